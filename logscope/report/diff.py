"""The report of ``logscope diff``: the verdict, the budget, the steps and arguments that differ, the times; and its JSON contract."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from logscope.differ import (
    SILENT,
    TITLES,
    WHOLE,
    ArgChange,
    Attribution,
    Change,
    Difference,
    PhaseTime,
    Term,
    in_order,
    ranks_cell,
    ranks_phrase,
    step_of,
    time_title,
)
from logscope.errors import UsageError
from logscope.packs import Packs
from logscope.report.diff_data import RECORDS, change_row, diff_data
from logscope.report.diff_words import NOT_REACHED, both_values, delta_words, signed_gib, step_title, two_values
from logscope.report.types import Column, Records, Report, Section, Style, Table, TableRow, Text
from logscope.units import count_text, gib, seconds_text
from logscope.words import inside_a_sentence

MOST_STEPS = 12
MOST_UNREACHED = 3
MOST_ARGS = 12
_NO_SUCH_LINE = "no such line"
_SCREEN = 80
_BESIDE_VALUES = 22  # columns for who gave it, the mark, and what stands between columns
_NARROWEST_VALUE = 10


class Shown(Struct, frozen=True):
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
    first = _first_text(difference, packs)
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
    budget = difference.budget
    if difference.is_changed and (_is_missing(budget) or any(_is_worth_a_row(term) for term in budget.terms)):
        yield _budget_table(budget)
    steps = _step_table(chosen, shown, packs)
    if steps.rows:
        yield steps
    elif difference.is_changed and (shown.phase or shown.rank):
        where = " on ".join(each for each in (shown.phase and f"of {shown.phase}", shown.rank) if each)
        where = where if shown.phase else f"on {where}"
        nothing = f"No step {where} differs: --all shows them."
        yield Text(("", nothing, "The verdict and the exit code are of all steps."), "aside")
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


def _first_text(difference: Difference, packs: Packs) -> str:
    """Say at which step they part, in words and by its event, on which ranks, and both values; or only which step one lacks first."""
    first = difference.first
    if first is None:
        return ""
    is_lack = not difference.causes and first.reason.startswith((NOT_REACHED, SILENT))
    title = inside_a_sentence(step_title(first, packs)).replace(": ", ", ", 1)
    where = ranks_phrase(first.ranks, first.of)
    values = " -> ".join(both_values(first, _NO_SUCH_LINE))
    return f"{'First step missing' if is_lack else 'First divergence'}: {title} ({first.event}){f', {where}' if where else ''}: {values}."


def _budget_table(budget: Attribution) -> Table:
    columns = (Column("KV budget, per rank"), Column("GiB", "count"), Column("Tokens", "count"))
    terms = [term for term in budget.terms if _is_worth_a_row(term)]
    rest = budget.residual + sum(term.bytes for term in budget.terms if term not in terms)
    rows = [
        TableRow(("before", gib(budget.before or 0), _tokens(budget.tokens_before))),
        *(TableRow((TITLES.get(t.term, t.term), signed_gib(t.bytes), _signed(t.tokens)), mark=True) for t in terms),
        TableRow((_rest_title(budget), signed_gib(rest), _signed(budget.residual_tokens)), mark=_is_missing(budget)),
        TableRow(("after", gib(budget.after or 0), _tokens(budget.tokens_after))),
    ]
    return Table("", columns, tuple(rows))


def _rest_title(budget: Attribution) -> str:
    return TITLES["missing"] if _is_missing(budget) else "rounding and remainder"


def _is_missing(budget: Attribution) -> bool:
    """Return whether the pools are not what free memory and fraction give, beyond print resolution."""
    return budget.missing is not None and abs(budget.missing.bytes) > budget.missing.step + 1


def _is_worth_a_row(term: Term) -> bool:
    """Return whether a term is more than print resolution, in bytes or, where it moves none, in tokens."""
    if term.bytes:
        return abs(term.bytes) >= max(term.step, 1)
    return term.tokens is not None and abs(term.tokens) >= 1


def _tokens(count: float | None) -> str:
    return "none" if count is None else count_text(count)


def _signed(count: float | None) -> str:
    if count is None:
        return ""
    return f"{round(count):+,}" if round(count) else "0"


def _step_table(chosen: Sequence[Change], shown: Shown, packs: Packs) -> Table:
    """Return the steps that differ, ranks with the same values folded, then the first that were not reached; all steps if asked."""
    wanted = [
        change
        for change in chosen
        if shown.all_rows or (change.is_worth_showing and (change.unit or change.delta is not None))
    ]
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
    everyone = in_order(each.rank for each in chosen if step_of(each) == step_of(change))
    who = ranks_cell((each.rank for each in group), len(everyone))
    before, after = both_values(change, "-")
    is_one_sided = (change.before is None or change.after is None) and not change.reason.startswith(
        (NOT_REACHED, SILENT)
    )
    delta = change.reason if is_one_sided else delta_words(change)
    return TableRow((step_title(change, packs), before, after, delta, who), mark=change.verdict == "changed")


def _arg_table(difference: Difference) -> Table:
    columns = (Column("What else differed"), Column("Before"), Column("After"), Column("Given"))
    blamed = {name for cause in difference.causes for name in cause.names}
    real = [arg for arg in difference.args if not arg.noise]
    shown = real[:MOST_ARGS]
    longest = max((len(arg.name) for arg in shown), default=0)
    rows = [TableRow(_arg_cells(arg, longest), mark=arg.name in blamed) for arg in shown]
    if not rows:
        rows = [TableRow(("nothing but what differs in every run", "", "", ""))]
    if len(real) > MOST_ARGS:
        rows.append(TableRow((f"{len(real) - MOST_ARGS} more: -f json", "", "", ""), is_detail=True))
    return Table("", columns, tuple(rows))


def _arg_cells(arg: ArgChange, longest: int) -> tuple[str, str, str, str]:
    """Return the cells of an argument, its values as long as the narrowest screen has room for beside the longest name."""
    none = "not said" if arg.origin == "log line" else "not set"
    values = [none if value in (None, "None") else str(value) for value in (arg.before, arg.after)]
    room = (_SCREEN - _BESIDE_VALUES - longest) // 2
    return (arg.name, *two_values(values[0], values[1], max(room, _NARROWEST_VALUE)), arg.origin or "not told")


def _time_table(difference: Difference, packs: Packs) -> Table:
    """Return the times of phases that differ by more than seconds, and of the whole launch where only one became ready."""
    columns = (Column("Time"), Column("Before s", "count"), Column("After s", "count"), Column("Change s", "count"))
    rows = [_time_row(each, packs) for each in difference.times if _is_other_time(each)]
    if rows:
        rows += [
            _time_row(each, packs) for each in difference.times if each.phase == WHOLE and not _is_other_time(each)
        ]
    return Table("", columns, tuple(rows))


def _is_other_time(each: PhaseTime) -> bool:
    if each.before is None or each.after is None:
        return False
    return abs(each.after - each.before) > max(2.0, 0.1 * each.before)


def _time_row(each: PhaseTime, packs: Packs) -> TableRow:
    values = [NOT_REACHED if value is None else seconds_text(value) for value in (each.before, each.after)]
    known = each.before is not None and each.after is not None
    delta = f"{(each.after or 0.0) - (each.before or 0.0):+,.0f}" if known else ""
    title = time_title(each.phase, packs)
    return TableRow((f"{title[:1].upper()}{title[1:]}", *values, delta))
