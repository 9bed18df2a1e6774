"""Sentences and short texts that several reports share."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from logscope.clock import seconds_between, seconds_to_glog
from logscope.launch import MIXED
from logscope.model import Launch, Pos
from logscope.packs import Blame, Packs
from logscope.rank import Rank
from logscope.reading import shown_name
from logscope.timeline import GAP, PhaseRow, item_quantities, phase_rows, token_capacity
from logscope.units import Quantity, count_text, gib

_LONGEST_REASON = 240


def headline(launch: Launch, packs: Packs) -> str:
    """Return the one sentence that says how a launch went, with numbers and the line that shows it."""
    say = {
        "ready": ready_sentence,
        "failed": _failed,
        "cut": cut_sentence,
        "hung": unfinished_sentence,
        "running": unfinished_sentence,
    }
    sentence = say[launch.outcome.kind](launch, packs)
    return f"{name_of(launch)}: {sentence}"


def name_of(launch: Launch) -> str:
    """Return what a launch is called: its file, or files, and its number where a file holds several."""
    files = [(shown_name(node.file), node.origin) for node in launch.nodes]
    return ", ".join(dict.fromkeys(f"{name} ({origin})" if origin else name for name, origin in files))


def ready_sentence(launch: Launch, packs: Packs) -> str:
    """Say when it was ready, with how many tokens, and what is left free; and how it ended, if the log shows that."""
    return ready_text(launch, packs) + _ended(launch, packs)


def ready_text(launch: Launch, packs: Packs) -> str:
    """Say when it was ready, with how many tokens, and what is left free."""
    parts = [f"ready{after_text(launch, launch.outcome.evidence[0], packs)}"]
    if launch.ranks:
        parts.append("1 rank" if len(launch.ranks) == 1 else f"{len(launch.ranks)} ranks")
    capacity = token_capacity(launch)
    if capacity is not None:
        kv = kv_cache(launch)
        parts.append(f"{count_text(capacity[0].value)} tokens of KV cache{f' ({kv})' if kv else ''}")
    left = left_free(launch)
    if left:
        parts.append(left)
    return f"{parts[0]}: {', '.join(parts[1:])}." if len(parts) > 1 else f"{parts[0]}."


def _ended(launch: Launch, packs: Packs) -> str:
    """Say how a launch ended after it was ready, if the log shows it."""
    ended = launch.ended
    if ended is None:
        return ""
    where = f" ({where_of(launch, ended.evidence[0])})" if ended.evidence else ""
    if ended.kind == "stopped":
        return f" It was stopped later{where}."
    return f" It {fate(launch)} later: {_reason(ended.reason, packs)}{_why(ended.blame)}{where}."


def fate(launch: Launch) -> str:
    """Return what became of a server that had been ready: it "died"; "failed" where the log does not show that its processes ended."""
    return "failed" if launch.ended is not None and launch.ended.blame == "banner" else "died"


def _failed(launch: Launch, packs: Packs) -> str:
    outcome = launch.outcome
    where = f" ({where_of(launch, outcome.evidence[0])})" if outcome.evidence else ""
    everyone = len(outcome.ranks) == len(launch.ranks) > 1
    on = f" on {ranks_text(outcome.ranks, launch.ranks)}" if everyone else ""
    by = f" {', '.join(rank_runs(outcome.ranks, launch.ranks))} says:" if outcome.ranks and not everyone else ""
    reason = _reason(outcome.reason, packs)
    after = after_text(launch, outcome.evidence[0], packs)
    return f"failed{after}{on}:{by} {reason}{_why(outcome.blame)}{where}."


def _reason(reason: str | None, packs: Packs) -> str:
    """Return the text of a failure on one line, without the heading of the block (the traceback) that follows it."""
    text = reason or ""
    for block in packs.envelope.blocks:
        text = text.removesuffix(block.begins)
    return clip(text.rstrip(".: "))


def _why(blame: Blame) -> str:
    """Say that a failure's line is not its cause, where it is none."""
    return "" if blame == "cause" else "; why is not in this log"


def cut_sentence(launch: Launch, packs: Packs) -> str:
    """Say what a log that is cut shows, and how far it goes."""
    last = last_step(launch, packs)
    if launch.has_start:
        return f"the log is cut: it ends inside a line ({where_of(launch, launch.outcome.evidence[0])}); {last}."
    if launch.ended is not None:
        return f"the log shows the end of a launch, not how it began and became ready.{_ended(launch, packs)}"
    return (
        "the log shows only a part of the launch: not how it began, and neither that it was ready nor that it failed; "
        f"{last}.{_mixed(launch)}"
    )


def _mixed(launch: Launch) -> str:
    """Say that lines of several launches are mixed, where that shows: what is said of each is then of no use."""
    found = next((note for note in launch.notes if note.startswith(MIXED)), None)
    return f" {found[:1].upper()}{found[1:]}; give each launch a log of its own." if found else ""


def unfinished_sentence(launch: Launch, packs: Packs) -> str:
    """Say that a launch is neither ready nor failed, and how far it got."""
    last = last_step(launch, packs)
    if launch.followed_by is not None:
        return f"ended without a word: the next launch begins at {where_of(launch, launch.followed_by)}; {last}.{_mixed(launch)}"
    state = (
        "hung: silent for longer than asked"
        if launch.outcome.kind == "hung"
        else "neither ready nor failed when the log ends"
    )
    return f"{state}; {last}."


def last_step(launch: Launch, packs: Packs) -> str:
    """Say how far the launch got: the phase that is open, or the last one that ended."""
    rows = [row for row in phase_rows(launch) if row.phase != GAP]
    opened = [row for row in rows if row.is_open]
    if opened:
        last = opened[-1]
        same = tuple(row.rank for row in opened if row.phase == last.phase)
        where = f" ({where_of(launch, last.begin.pos)})" if last.begin else ""
        return f"still open: {phase_title(last, packs)} on {ranks_text(same, launch.ranks)}{where}{_progress(launch, last.phase)}"
    if rows:
        end = rows[-1].end
        where = f" ({where_of(launch, end.pos)})" if end else ""
        return f"the last phase that ended is {phase_title(rows[-1], packs)}{where}"
    return f"the last line that is known is {launch.events[-1].pattern.id} ({where_of(launch, launch.events[-1].pos)})"


def _progress(launch: Launch, phase: str) -> str:
    """Say what the last progress bar of a phase shows, if there is one."""
    bars = [event for event in launch.events if event.pattern.said_by == "bar" and event.pattern.phase == phase]
    done, total = (bars[-1].quantity("done"), bars[-1].quantity("total")) if bars else (None, None)
    if done is None or total is None:
        return ""
    free = bars[-1].quantity("avail_mem_bytes")
    left = f" with {gib(free.value, free.resolution)} GiB free" if free is not None else ""
    return f", at {count_text(done.value)} of {count_text(total.value)}{left}"


def where_of(launch: Launch, pos: Pos) -> str:
    """Write a position: the line alone where the launch is in one file, which the sentence names already."""
    return str(pos) if len({node.file for node in launch.nodes}) > 1 else f"line {pos.line}"


def phase_title(row: PhaseRow, packs: Packs) -> str:
    """Name a phase for people: "Capture graphs: decode", "KV cache + Mamba state"; for a gap, where it is."""
    if row.phase == GAP:
        where, _, phase = (row.kind or "").partition(" ")
        return f"({where} {inside_a_sentence(packs.phases[phase].title)})"
    title = packs.phases[row.phase].title
    if row.items and row.begin is not None and row.begin.pattern.edge == "point":
        title = " + ".join(row.items)
    if row.kind:
        return f"{title}: {row.kind}"
    return f"{title} (draft)" if row.worker == "draft" else title


def after_text(launch: Launch, stop: Pos, packs: Packs) -> str:
    """Say after what time something happened, where the clock tells and the log shows the start."""
    seconds = elapsed_until(launch, stop) if launch.has_start else None
    if seconds is None:
        return ""
    if any(event.pattern.opens_launch for event in launch.events):
        return f" after {duration_text(seconds)}"
    first = inside_a_sentence(packs.phase_of(launch.events[0].pattern).title)
    return f" {duration_text(seconds)} after {first} began"


def inside_a_sentence(title: str) -> str:
    """Write a title as it stands inside a sentence: "Load weights" is "load weights", "KV cache" stays."""
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def elapsed_until(launch: Launch, stop: Pos) -> float | None:
    """Return the seconds from the first clock of a launch to that of a line, both of the node that prints the line.

    A line without a clock (the end of a traceback) has that of the line before it; one of glog has its own, of another form.
    """
    event_there = next((event for event in launch.events if event.pos == stop), None)
    origin = event_there.origin if event_there is not None else ""
    own = [event for event in launch.events if event.pos.file == stop.file and event.origin in (origin, "")]
    clocks = [event.clock for event in own if event.pos.line <= stop.line and event.clock is not None]
    if not clocks:
        return None
    seconds = seconds_between(clocks[0], clocks[-1]) if len(clocks) > 1 else None
    if event_there is not None and event_there.clock is None:
        passed = seconds_to_glog(clocks[-1], event_there.text)
        seconds = (seconds or 0.0) + passed if passed is not None else seconds
    return seconds if seconds is None or seconds >= 0 else None


def duration_text(seconds: float) -> str:
    """Write a duration by the clock: "12 s", "9 min 43 s", "1 h 02 min"."""
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def kv_cache(launch: Launch) -> str:
    """Say how large the KV cache of the target is on each rank; empty where no line says it."""
    sizes: dict[Rank, Quantity] = {}
    for event, worker in zip(launch.events, launch.workers, strict=True):
        for item, number in item_quantities(event):
            if item == "KV cache" and worker == "target":
                sizes[event.rank] = sizes.get(event.rank, Quantity(0, 0)) + number
    return per_rank_text(list(sizes.values()))


def left_free(launch: Launch) -> str:
    """Say how much memory is free on each rank at the end of the launch; empty where no line says it."""
    last: dict[Rank, Quantity] = {}
    for event in launch.events:
        free = event.quantity("avail_mem_bytes")
        if free is not None and event.pattern.is_of_a_rank:
            last[event.rank] = free
    return per_rank_text(list(last.values()), "left free")


def per_rank_text(numbers: Sequence[Quantity], what: str = "") -> str:
    """Write what each rank has: one figure where they agree, else the range; ``what`` follows the unit."""
    if not numbers:
        return ""
    low, high = min(numbers, key=lambda n: n.value), max(numbers, key=lambda n: n.value)
    figure = gib(low.value, low.resolution)
    if not low.meets(high):
        figure += f"..{gib(high.value, high.resolution)}"
    words = (f"{figure} GiB", what, "per rank" if len(numbers) > 1 else "")
    return " ".join(word for word in words if word)


def rank_label(rank: Rank, all_ranks: Sequence[Rank]) -> str:
    """Name one rank: by its tag, with its node where two nodes have the same tag."""
    is_told_by_tag = len({other.tag for other in all_ranks}) == len(all_ranks)
    return replace(rank, node=None).label if is_told_by_tag else rank.label


def ranks_text(ranks: Iterable[Rank], all_ranks: Sequence[Rank]) -> str:
    """Name ranks shortly: "all 8 ranks", "TP0, TP7", "TP1..TP6"; the single rank without a tag is "1 rank"."""
    own = sorted(set(ranks))
    if len(own) == len(all_ranks) > 1:
        return f"all {len(own)} ranks" if len(own) > 2 else "both ranks"
    if [rank.tag for rank in own] == [""]:
        return "1 rank"
    if len(own) == len(all_ranks) == 1:
        return f"1 rank ({rank_label(own[0], all_ranks)})"
    return ", ".join(rank_runs(own, all_ranks))


def rank_runs(ranks: Sequence[Rank], all_ranks: Sequence[Rank]) -> Iterator[str]:
    """Fold neighbours that differ in their TP number only, three and more."""
    runs: list[list[Rank]] = []
    for rank in ranks:
        if runs and _follows(runs[-1][-1], rank, all_ranks):
            runs[-1].append(rank)
        else:
            runs.append([rank])
    for run in runs:
        labels = [rank_label(rank, all_ranks) for rank in run]
        yield f"{labels[0]}..{labels[-1]}" if len(run) > 2 else ", ".join(labels)


def _follows(earlier: Rank, later: Rank, all_ranks: Sequence[Rank]) -> bool:
    if earlier.tp is None or later.tp is None or later.tp != earlier.tp + 1:
        return False
    rest = [
        rank_label(rank, all_ranks).replace(f"TP{rank.tp}", "").replace(f"EP{rank.ep}", "") for rank in (earlier, later)
    ]
    return rest[0] == rest[1]


def clip(text: str, limit: int = _LONGEST_REASON) -> str:
    """Shorten a text to one line of bounded length."""
    line = " ".join(text.split())
    short = textwrap.shorten(line, limit, placeholder=" ...", break_on_hyphens=False)
    is_word_cut = len(line) > limit and len(short) < limit // 2  # a long word, a path, is next: cut inside of it
    return f"{line[: limit - 4]} ..." if is_word_cut else short
