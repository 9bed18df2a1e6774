"""Which messages bear on a launch, and what logscope's recogniser makes of their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from packaging.version import Version

from logscope.events import Recogniser, printed_values
from logscope.lines import read_lines
from logscope.model import Drift, LogLine
from logscope.packs import Form, Pattern
from logscope.scan import ReadState

from .harvest import Message
from .render import TRACEBACK_HEAD, Rendered
from .template import normalised

Fault = Literal["miss", "drift", "ambiguous", "out of range", "number"]

# what a launch runs, by file
_LAUNCH_PATH = re.compile(
    r"^sglang/(?:launch_server\.py|cli/|srt/(?:\w+\.py|utils/|entrypoints/|managers/|model_executor/|model_loader/|distributed/|speculative/"
    r"|mem_cache/|arg_groups/|lora/|configs/|compilation/|layers/|platforms/|observability/|models/|ray/|weight_cache/|hardware_backend/"
    r"|multimodal/processors/|eplb/|batch_overlap/|state_capturer/))"
)
_NOT_LAUNCH = re.compile(
    r"/(?:mem_cache/storage|multimodal|entrypoints/(?:openai|ollama|anthropic|harmony\w*)|nixl|hicache_storage|session\w*|sparsity)(?:/|\.py)"
    r"|/(?:test_utils|bench\w*|common_offline\w*|profile\w*|host_shared_kernel|weight_checker|expert_distribution\w*|killall"
    r"|ci_weight_validation|grpc_bridge|schedule_policy|batch_result_processor|radix_cache|forward_batch_info|spec_utils)\b"
)
# functions that a launch does not run: they answer requests, or serve
_SERVING = re.compile(
    r"(?:^|\.)_?(?:handle_\w*request|validate_\w*|\w*_req(?:s|uest|uests)?|process_batch\w*|flush_cache|load_back|write_backup|evict\w*"
    r"|check_\w*_leak\w*|check_memory|self_check_\w*|pretty_print|generate_token_bitmask|calculate_time|abort|abort_\w*|rebalance"
    r"|continue_generation|\w*profile\w*|benchmark\w*|bench_\w*|log_(?:prefill|decode)_stats|retract_decode|prefetch_from\w*"
    r"|dump_requests_before_crash)(?:\.|$)"
)
_MEMORY = re.compile(
    r"\{[^{}]*\} ?(?:GB|GiB|MB|MiB|KB|KiB)\b|avail\w*[ _]mem\w* ?[=:(]? ?\{|mem usage|(?i:not enough|insufficient|out of) (?:\w+ )?memory"
    r"|mem.fraction.static|no GPU memory"
)
_BYTES = re.compile(r"(?:num|capacity|staged|total|dense)_bytes=\{|memory_allocated")
_TOKENS = re.compile(
    r"max_total(?:_num)?_tokens ?[:=] ?\{|#tokens: \{|(?:full|swa)_layer_tokens ?[:=] ?\{|token capacity|KV pool (?:size|holds)"
)
_TIME = re.compile(
    r"\b(?:elapsed|took|takes|time|in|after|waiting|waiting for) ?[=:]? ?\{[^{}]*\} ?(?:s|ms|sec|secs|seconds)\b|\} s after "
)
_OUTCOME = re.compile(
    r"(?i)^initialization failed\.|rank \{\} initialization failed|hit an exception: |scheduler (?:is dead|died)|received sigquit"
    r"|SIGQUIT received|watchdog timeout|fired up and ready|graph failed:|crashed with exit code"
    r"|^exception in (?:ModelTpServer|run_tp_server)|init state: |memory capacity is unbalanced|port is already in use"
    r"|health check server (?:started|failed)|SIGTERM received|gracefully exiting"
)


@dataclass(frozen=True, slots=True)
class Fit:
    """A form that fits a line: its event, its place-independent id, and the printed values with their units."""

    pattern: Pattern
    form: Form
    values: tuple[tuple[str, str], ...]

    @property
    def id(self) -> str:
        """The event and the number of the form in it."""
        return f"{self.pattern.id}#{next(i for i, form in enumerate(self.pattern.forms) if form is self.form)}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one alternative of a message."""

    rendered: Rendered
    fits: tuple[Fit, ...]
    fault: Fault | None = None
    what: str = ""


def is_launch_path(message: Message) -> bool:
    """Tell whether a launch can run the code that prints the message."""
    file = message.file
    if not _LAUNCH_PATH.search(file) or _NOT_LAUNCH.search(file):
        return False
    return not _SERVING.search(message.function)


def bears(message: Message) -> str | None:
    """Return what a message tells of a launch (memory, outcome, tokens or time); None if nothing, or if a launch does not print it."""
    if message.level == "debug" or not is_launch_path(message):
        return None
    text = normalised(message.template)
    if _MEMORY.search(text):
        return "memory"
    if _OUTCOME.search(text):
        return "outcome"
    if message.kind == "raise":
        return None
    if _BYTES.search(text):
        return "memory"
    if _TOKENS.search(text):
        return "tokens"
    return "time" if _TIME.search(text) else None


def judge(rendered: Rendered, release: str, recogniser: Recogniser, strict: bool) -> Verdict:
    """Read the lines of one alternative; ``strict``: it must be recognised by one form of this release, and its numbers read."""
    fits, drifts, lines = read_fits(rendered, recogniser)
    firm = tuple(fit for fit in fits if not fit.pattern.fallback)
    if len(firm) > 1:
        return Verdict(rendered, firm, "ambiguous", " and ".join(fit.id for fit in firm))
    if drifts:
        return Verdict(rendered, firm, "drift", ", ".join(drifts))
    outside = next((fit for fit in firm if not holds(fit.form, release)), None)
    if outside is not None:
        return Verdict(rendered, firm, "out of range", f"{outside.id} [{outside.form.since}, {outside.form.until})")
    if not strict:
        return Verdict(rendered, fits)
    if not firm:
        return Verdict(rendered, fits, "miss")
    lost = tuple(lost_numbers(rendered, firm, lines))
    return Verdict(rendered, firm, "number" if lost else None, ", ".join(lost))


def read_fits(rendered: Rendered, recogniser: Recogniser) -> tuple[tuple[Fit, ...], tuple[str, ...], set[int]]:
    """Return the forms that fit the lines of a message, the events whose literal stands in a line that none fits, the lines that fit."""
    head = TRACEBACK_HEAD if rendered.message.kind == "raise" else ""
    fits: list[Fit] = []
    drifts: list[str] = []
    lines: set[int] = set()
    blocks = [(head + rendered.lines).encode()]
    for line in read_lines("release", blocks, recogniser.packs, recogniser.gate, ReadState()):
        found = list(_fits(line, recogniser))
        firm = [fit for fit in found if not fit.pattern.fallback]
        fits += firm or found[:1]
        if firm:
            lines.add(line.pos.line - 1 - head.count("\n"))
        if not found and isinstance(item := recogniser.recognise(line), Drift):
            drifts += item.patterns
    return tuple({fit.id: fit for fit in fits}.values()), tuple(drifts), lines


def _fits(line: LogLine, recogniser: Recogniser) -> Iterator[Fit]:
    for pattern, form, values in recogniser.fitting(line, recogniser.candidates(line)):
        printed = printed_values(line, pattern, form) or {}
        read = []
        for name, text in printed.items():
            field = pattern.fields.get(name)
            unit = printed.get(f"{name}_unit") or (field.unit if field else "text")
            if field is None or field.result in values:
                read.append((text, unit))
        yield Fit(pattern, form, tuple(read))


def holds(form: Form, release: str) -> bool:
    """Tell whether a release lies in the range of a form."""
    version = Version(release)
    after = form.since is None or version >= Version(form.since)
    return after and (form.until is None or version < Version(form.until))


_UNITS = {
    "GB": {"GiB", "GB"},
    "GiB": {"GiB"},
    "MB": {"MiB", "MB"},
    "MiB": {"MiB"},
    "KB": {"KiB", "kB", "KB"},
    "KiB": {"KiB"},
    "ms": {"ms"},
    "milliseconds": {"ms"},
    "%": {"percent", "%"},
    "bytes": {"bytes"},
    "tokens": {"tokens", "count"},
}


def lost_numbers(rendered: Rendered, fits: tuple[Fit, ...], lines: set[int]) -> Iterator[str]:
    """Yield the numbers with units, on lines that fit a form, that no field holds as printed and in their unit."""
    values = [value for fit in fits for value in fit.values]
    for number in rendered.numbers:
        if number.line not in lines:
            continue
        units = _UNITS.get(number.unit, {"s"})
        if not any(_printed(text) == number.text and unit in units for text, unit in values):
            yield f"{number.text} {number.unit}"


def _printed(text: str) -> str:
    return re.split(r"(?<=\d)[ %A-Za-z]", text, maxsplit=1)[0].removesuffix(".")
