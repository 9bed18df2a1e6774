"""Judge releases, several at a time."""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from logscope.events import Recogniser
from logscope.launch.releases import infer_releases
from logscope.model import Event, ReleaseRange
from logscope.packs import load_packs
from logscope.scan import ReadState

from .exceptions import excepted_by
from .harvest import Message
from .judge import Verdict, bears, is_launch_path, judge
from .releases import cache_dir, read_release
from .render import TRACEBACK_HEAD, render
from .template import Template, normalised

# what nearly every launch says
MINIMAL = (
    "server_args.printed",
    "init_torch_distributed.begin",
    "init_torch_distributed.end",
    "load_weights.begin",
    "load_weights.end",
    "kv_cache.allocated",
    "memory_pool.end",
    "cuda_graph.begin",
    "cuda_graph.end",
    "ready.capacity",
    "ready.fired_up",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of the alternatives of one message that fared alike."""

    hash: str
    template: str
    place: str
    function: str
    kind: str
    bears: str | None
    forms: tuple[str, ...]
    fault: str | None
    what: str
    line: str
    at_launch: bool


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """Everything that was found out about one release, and which releases its own lines allow."""

    release: str
    messages: int
    findings: tuple[Finding, ...]
    allowed: ReleaseRange
    allowed_minimal: ReleaseRange


def judge_releases(releases: Sequence[str], jobs: int) -> Iterator[ReleaseResult]:
    """Yield the result of each release, in the given order."""
    if jobs <= 1 or len(releases) == 1:
        yield from map(judge_release, releases)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(judge_release, releases)


def judge_release(release: str) -> ReleaseResult:
    """Read a release and judge all its messages."""
    messages, constants = read_release(release, cache_dir())
    recogniser = _recogniser()
    findings: dict[tuple[object, ...], Finding] = {}
    for message in messages:
        for finding in _judge_message(message, release, constants, recogniser):
            findings.setdefault((finding.hash, finding.place, finding.forms, finding.fault, finding.what), finding)
    said = [finding for finding in findings.values() if finding.forms and finding.at_launch]
    minimal = [finding for finding in said if any(form.partition("#")[0] in MINIMAL for form in finding.forms)]
    return ReleaseResult(
        release, len(messages), tuple(findings.values()), _allowed(said, recogniser), _allowed(minimal, recogniser)
    )


def _judge_message(
    message: Message, release: str, constants: dict[str, Template], recogniser: Recogniser
) -> Iterator[Finding]:
    template = normalised(message.template)
    if excepted_by(message.file, template, release) is not None:
        return
    bearing = bears(message)
    at_launch = message.level != "debug" and is_launch_path(message)
    for rendered in render(message, release, constants):
        verdict = judge(rendered, release, recogniser, strict=bearing is not None)
        finding = _finding(verdict, template, bearing, at_launch)
        if bearing or finding.forms or finding.fault:
            yield finding


def _finding(verdict: Verdict, template: str, bearing: str | None, at_launch: bool) -> Finding:
    message = verdict.rendered.message
    digest = hashlib.sha256(f"{message.kind} {template}".encode()).hexdigest()[:8]
    forms = tuple(fit.id for fit in verdict.fits if not fit.pattern.fallback)
    return Finding(
        digest,
        template,
        message.place,
        message.function,
        message.kind,
        bearing,
        forms,
        verdict.fault,
        verdict.what,
        verdict.rendered.lines,
        at_launch,
    )


def _allowed(findings: Iterable[Finding], recogniser: Recogniser) -> ReleaseRange:
    """Return the releases that a log of these lines can come from, as logscope infers it."""
    heads = {"raise": TRACEBACK_HEAD}
    log = "".join(heads.get(finding.kind, "") + finding.line for finding in findings)
    items = recogniser.read("release", [log.encode()], ReadState())
    return infer_releases(item for item in items if isinstance(item, Event))


@cache
def _recogniser() -> Recogniser:
    return Recogniser(load_packs(), dense=True)
