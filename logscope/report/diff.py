"""The report of ``logscope diff``: the verdict, the budget, the steps and arguments that differ, the times; and its JSON contract."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from logscope.amounts import flag_text
from logscope.differ import TITLES, ArgChange, Attribution, Change, Difference, Divergence, Term
from logscope.errors import UsageError
from logscope.packs import Packs
from logscope.report.diff_data import RECORDS, change_row, diff_data
from logscope.report.types import Column, Records, Report, Section, Style, Table, TableRow, Text
from logscope.units import count_text, gib, seconds_text
from logscope.words import clip, inside_a_sentence

MOST_STEPS = 12
MOST_UNREACHED = 3
MOST_ARGS = 12


@dataclass(frozen=True, slots=True)
class Shown:
    """What to show: every step (``all_rows``), one rank, one phase; None is all of them."""

    all_rows: bool = False
    rank: str | None = None
    phase: str | None = None

    def chosen(self, difference: Difference) -> list[Change]:
        """Return the steps to show.

        Raises:
            UsageError: there is no such rank or phase.
        """
        ranks = {change.rank for change in difference.changes}
        phases = {change.phase for change in difference.changes}
        if self.rank is not None and not any(_is_rank(rank, self.rank) for rank in ranks):
            raise UsageError(
                f"no rank {self.rank!r} in these launches\n  do: take one of {', '.join(sorted(ranks - {''})) or 'none'}"
            )
        if self.phase is not None and self.phase not in phases:
            raise UsageError(f"no step of phase {self.phase!r}\n  do: take one of {', '.join(sorted(phases))}")
        return [
            change
            for change in difference.changes
            if (self.rank is None or _is_rank(change.rank, self.rank))
            and (self.phase is None or change.phase == self.phase)
        ]


def _is_rank(rank: str, wanted: str) -> bool:
    return wanted.upper() == rank.upper() or wanted.upper() in rank.upper().split()


def diff_report(difference: Difference, packs: Packs, shown: Shown) -> Report:
    """Return the report of one comparison.

    Raises:
        UsageError: a rank or phase that is in neither launch.
    """
    chosen = shown.chosen(difference)
    sections: list[Section] = [Text(difference.lines, _style(difference), hang=2)]
    first = _first_text(difference.first, packs)
    if first:
        sections.append(Text((first,), hang=2))
    sections.extend(_tables(difference, chosen, shown, packs))
    if difference.notes:
        sections.append(Text(("", *(f"Note: {note}." for note in difference.notes)), "aside", hang=2))
    rows = [change_row(change) for change in chosen]
    return Report("diff", tuple(sections), diff_data(difference, chosen), Records("changes", RECORDS, rows))


def _style(difference: Difference) -> Style:
    if not difference.is_changed:
        return "good"
    return "bad" if difference.after.diagnosis is not None else "warning"


def _tables(difference: Difference, chosen: Sequence[Change], shown: Shown, packs: Packs) -> Iterator[Section]:
    if difference.budget.terms and difference.is_changed:
        yield _budget_table(difference.budget)
    steps = _step_table(chosen, shown, packs)
    if steps.rows:
        yield steps
    if difference.args:
        yield _arg_table(difference)
        noise = [arg.name for arg in difference.args if arg.noise]
        if noise:
            yield Text((f"Not shown, different in every run: {', '.join(noise)}.",), "aside", hang=2)
    else:
        yield Text(("", _what_else(difference)), "aside")
    times = _time_table(difference, packs)
    if times.rows:
        yield times


def _what_else(difference: Difference) -> str:
    """Say that no argument differs, or that it cannot be told."""
    silent = [side.name for side in (difference.before, difference.after) if not side.launch.args.values]
    if silent:
        return f"What else differed: arguments are not in {' and '.join(dict.fromkeys(silent))}."
    return "What else differed: no argument, no fact of other lines."


def _first_text(first: Divergence | None, packs: Packs) -> str:
    if first is None:
        return ""
    phase = packs.phases.get(first.phase)
    title = inside_a_sentence(phase.title) if phase else first.phase
    rank = f" on {first.rank}" if first.rank else ""
    values = f"{_value(first.before, first.unit)} -> {_value(first.after, first.unit)}"
    return f"First divergence: {title}{rank} ({first.event}): {values}."


def _value(value: float | str | None, unit: str) -> str:
    if value is None:
        return "not reached"
    if isinstance(value, str):
        return clip(value, 20)
    if unit == "bytes":
        return f"{gib(value)} GiB"
    if unit == "s":
        return f"{seconds_text(value, 0.01)} s"
    return count_text(value) if unit == "tokens" or value == int(value) else flag_text(value)


def _budget_table(budget: Attribution) -> Table:
    columns = (Column("KV budget, per rank"), Column("GiB", "count"), Column("Tokens", "count"))
    terms = [term for term in budget.terms if _is_worth_a_row(term)]
    rest = budget.residual + sum(term.bytes for term in budget.terms if term not in terms)
    rows = [
        TableRow(("before", gib(budget.before or 0), _tokens(budget.tokens_before))),
        *(TableRow((TITLES.get(t.term, t.term), _signed_gib(t.bytes), _signed(t.tokens)), mark=True) for t in terms),
        TableRow(("rounding and remainder", _signed_gib(rest), _signed(budget.residual_tokens))),
        TableRow(("after", gib(budget.after or 0), _tokens(budget.tokens_after))),
    ]
    return Table("", columns, tuple(rows))


def _is_worth_a_row(term: Term) -> bool:
    """Return whether a term is more than print resolution, in bytes or, where it moves none, in tokens."""
    if term.bytes:
        return abs(term.bytes) >= max(term.step, 1)
    return term.tokens is not None and abs(term.tokens) >= 1


def _tokens(count: float | None) -> str:
    return "none" if count is None else count_text(count)


def _signed_gib(amount: float) -> str:
    text = gib(amount)
    return text if text.startswith("-") or float(text.replace(",", "")) == 0 else f"+{text}"


def _signed(count: float | None) -> str:
    if count is None:
        return ""
    return f"{round(count):+,}"


def _step_table(chosen: Sequence[Change], shown: Shown, packs: Packs) -> Table:
    """Return the steps that differ, ranks with the same values folded, then the first that were not reached; all steps if asked."""
    wanted = [change for change in chosen if shown.all_rows or (change.is_worth_showing and change.unit)]
    groups: dict[tuple[object, ...], list[Change]] = {}
    for change in wanted:
        head = (change.worker, change.event, change.role, change.field, change.verdict, change.reason)
        values = (change.before, change.after) if not shown.rank else (change.rank,)
        groups.setdefault((*head, *values), []).append(change)
    folded = list(groups.values())
    if not shown.all_rows:
        folded, hidden = _first_of(folded)
    rows = [_step_row(group, chosen, packs) for group in folded]
    if not shown.all_rows and hidden:
        rows.append(TableRow((f"{hidden} more: --all", "", "", "", ""), is_detail=True))
    columns = (
        Column("Step"),
        Column("Before", "count"),
        Column("After", "count"),
        Column("Change", "count"),
        Column("Ranks"),
    )
    return Table("", columns, tuple(rows))


def _first_of(groups: Sequence[list[Change]]) -> tuple[list[list[Change]], int]:
    """Return what fits a screen, changed steps before those that were not reached, and how many are left out."""
    changed = [group for group in groups if group[0].verdict == "changed"]
    unreached = [group for group in groups if group[0].verdict != "changed"]
    shown = [*changed[:MOST_STEPS], *unreached[:MOST_UNREACHED]]
    return shown, len(groups) - len(shown)


def _step_row(group: Sequence[Change], chosen: Sequence[Change], packs: Packs) -> TableRow:
    change = group[0]
    delta = "" if change.delta is None else _delta(change)
    every = {each.rank for each in chosen if each.event == change.event and each.rank}
    own = {each.rank for each in group if each.rank}
    who = (
        f"all {len(own)}"
        if len(own) > 1 and own == every
        else ", ".join(sorted(own))
        if len(own) < 4
        else f"{len(own)} ranks"
    )
    cells = (
        _step_name(change, packs),
        _value(change.before, change.unit),
        _value(change.after, change.unit),
        delta,
        who,
    )
    if (change.before is None or change.after is None) and not change.reason.startswith("not reached"):
        values = ["-" if text == "not reached" else text for text in cells[1:3]]
        cells = (cells[0], values[0], values[1], change.reason, who)
    return TableRow(cells, mark=change.verdict == "changed")


def _step_name(change: Change, packs: Packs) -> str:
    phase = packs.phases.get(change.phase)
    title = phase.title if phase else change.phase
    role = f" {change.role}" if change.role else ""
    draft = " (draft)" if change.worker == "draft" else ""
    field = change.field.removesuffix("_bytes").removesuffix("_s").replace("_", " ")
    return f"{title}{role}{draft}: {field}"


def _delta(change: Change) -> str:
    delta = change.delta or 0.0
    if change.unit == "bytes":
        return f"{_signed_gib(delta)} GiB"
    if change.unit == "s":
        return f"{delta:+,.1f} s"
    return f"{delta:+,.6g}" if delta != int(delta) else f"{int(delta):+,}"


def _arg_table(difference: Difference) -> Table:
    columns = (Column("What else differed"), Column("Before"), Column("After"), Column("Given"))
    blamed = {cause.name for cause in difference.causes}
    real = [arg for arg in difference.args if not arg.noise]
    rows = [TableRow(_arg_cells(arg), mark=arg.name in blamed) for arg in real[:MOST_ARGS]]
    if not rows:
        rows = [TableRow(("nothing but what differs in every run", "", "", ""))]
    if len(real) > MOST_ARGS:
        rows.append(TableRow((f"{len(real) - MOST_ARGS} more: -f json", "", "", ""), is_detail=True))
    return Table("", columns, tuple(rows))


def _arg_cells(arg: ArgChange) -> tuple[str, str, str, str]:
    before, after = (clip(value, 28) if value is not None else "not set" for value in (arg.before, arg.after))
    return arg.name, before, after, arg.origin or ""


def _time_table(difference: Difference, packs: Packs) -> Table:
    """Return the times of phases, where any of them differs by more than seconds."""
    columns = (Column("Time"), Column("Before s", "count"), Column("After s", "count"), Column("Change s", "count"))
    rows = [
        TableRow((_phase_name(each.phase, packs), seconds_text(each.before), seconds_text(each.after), f"{each.after - each.before:+,.0f}"))
        for each in difference.times
        if each.before is not None and each.after is not None
        and abs(each.after - each.before) > max(2.0, 0.1 * each.before)
    ]  # fmt: skip
    return Table("", columns, tuple(rows))


def _phase_name(phase: str, packs: Packs) -> str:
    return packs.phases[phase].title if phase in packs.phases else phase
