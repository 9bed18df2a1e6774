"""Rules over what is not there: an absence is told only where the launch came up, or failed for a known reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from logscope.causes import LAST, ORDER, diagnose
from logscope.checker.presence import matching, names
from logscope.checker.subject import Subject
from logscope.checker.types import Judgement, Rule
from logscope.checker.vocabulary import READY
from logscope.launch import LogEnd, judge
from logscope.model import Launch, Pos

_UNKNOWN = ("cause_not_in_log", "rank_missing", LAST)  # behind each of them may be any other cause
_OUT_OF_MEMORY = ("failure.out_of_memory", "failure.driver_out_of_memory")
_OOMS = tuple(cause for cause in ORDER if cause.startswith("oom_"))


def judge_absent(rule: Rule, subject: Subject) -> Judgement:
    """Judge whether none of some events, findings or causes is there; ``until``: up to the first line of that event."""
    launch, until = subject.launch, rule.expect.until
    stop = next((event.pos for event in launch.events if until and names(event, until)), None)
    failures = [each for each in _failures(subject) if not _is_after(each[1], stop)]
    found: dict[str, tuple[Pos, ...]] = {}
    for name, places in (item for word in rule.expect.absent for item in matching(subject, word).items()):
        early = tuple(pos for pos in places if not _is_after(pos, stop))
        if early or (not places and stop is None):
            found[name] = early
    for cause, pos, event in failures:
        name = _meant(cause, event, rule.expect.absent)
        if name:
            found.setdefault(name, (pos,) if pos else ())
    if found:
        lines = sorted({pos for places in found.values() for pos in places}, key=lambda pos: (pos.file, pos.line))
        return Judgement("fail", f"there: {', '.join(found)}", "", (), tuple(lines))
    if until is not None and stop is None:
        return Judgement("inconclusive", "not there", f"the launch did not get to {until}")
    if until is None and launch.outcome.kind not in ("ready", "failed"):
        return Judgement("inconclusive", "not there", "the log ends before the launch is ready or failed")
    open_ = next((each for each in failures if each[0] in _UNKNOWN), None)
    if open_ is not None and any(_is_of_failures(word, subject) for word in rule.expect.absent):
        why = f"the launch failed, and its log does not tell for what reason ({open_[0]})"
        return Judgement("inconclusive", "not there", why, (), (open_[1],) if open_[1] else ())
    return Judgement("pass", "not there")


def _failures(subject: Subject) -> Iterator[tuple[str, Pos | None, str]]:
    """Yield the failures of a launch as (cause, line, event): that before its ready line, which does not undo it, and how it ended."""
    launch = subject.launch
    earlier = _before_ready(launch, subject)
    for each, diagnosis in (
        *([(earlier, diagnose(earlier, subject.packs, subject.explanation.sizing))] if earlier else []),
        (launch, subject.explanation.diagnosis),
    ):
        end = each.ended or each.outcome
        if end.kind == "failed":
            yield (
                diagnosis.cause if diagnosis else LAST,
                end.evidence[0] if end.evidence else None,
                end.event or "",
            )


def _before_ready(launch: Launch, subject: Subject) -> Launch | None:
    """Return a launch as its log tells it before the line that says ready, where it failed there; None where it did not."""
    if launch.outcome.kind != "ready":
        return None
    ready: dict[str, int] = {}
    for event in launch.events:
        if event.pattern.ends == READY:
            ready.setdefault(event.pos.file, event.pos.line)
    early = [event for event in launch.events if event.pos.line < ready.get(event.pos.file, 0)]
    if not early:
        return None
    outcome, _ = judge(early, subject.packs, LogEnd(True, None, early[-1].pos), None)
    return replace(launch, outcome=outcome, ended=None) if outcome.kind == "failed" else None


def _meant(cause: str, event: str, words: Sequence[str]) -> str:
    """Return what of a failure the words name: its cause, or a lack of memory in a phase that the log does not show; else nothing."""
    if any(fnmatchcase(cause, word) for word in words):
        return cause
    is_any_oom = all(any(fnmatchcase(oom, word) for word in words) for oom in _OOMS)
    return event if cause in _UNKNOWN and event in _OUT_OF_MEMORY and is_any_oom else ""


def _is_of_failures(word: str, subject: Subject) -> bool:
    """Return whether a word names a cause, or an event that ends a launch."""
    if any(fnmatchcase(cause, word) for cause in (*ORDER, LAST)):
        return True
    ends = (pattern for pattern in subject.packs.patterns if (pattern.ends or "").startswith("failed"))
    return any(fnmatchcase(pattern.id, word) for pattern in ends)


def _is_after(pos: Pos | None, stop: Pos | None) -> bool:
    return pos is not None and stop is not None and pos.file == stop.file and pos.line > stop.line
