"""That no value of mem_fraction_static works: said once, by the cause, or by another launch of the same log that ran out above."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from logscope.causes import NONE_WORKS, Diagnosis
from logscope.explainer._subject import Subject
from logscope.explainer._types import Explanation
from logscope.model import Finding, Launch, Pos
from logscope.packs import Packs
from logscope.server_args import ArgValue
from logscope.sizing import RunOut, Sizing, fraction_used, least_viable, suggested_fraction
from logscope.sizing.fraction import FLAG

ID = "no_workable_fraction"
OUT_OF_MEMORY_AFTER_POOL = ("oom_kv_pool", "oom_backend_init", "oom_graph_capture", "oom_runtime")
_SAID = re.compile(rf"(?i){NONE_WORKS}: (?P<why>.+?)\. (?P<remedy>.+)")
_TURNS_FRACTION = re.compile(r"(?i)\b(?:raise|lower) --mem-fraction-static\b")
_REMEDY = "Use fewer or smaller graphs, smaller chunks, more tensor parallelism, a smaller or quantized model, or no draft model."


def find(subject: Subject) -> Iterator[Finding]:
    """Yield that no fraction works; else which fraction ran out of memory in an earlier launch."""
    diagnosis, run_out = subject.diagnosis, subject.sizing.run_out
    if diagnosis is None:
        return
    said = _SAID.search(diagnosis.remedy)
    if said is not None:
        yield Finding(
            "no_workable_fraction", "error", f"{NONE_WORKS}: {said['why']}.", _budget_places(subject), said["remedy"]
        )
        return
    minimum = subject.sizing.fraction.minimum
    if run_out is None or minimum is None or diagnosis.direction != "raise":
        return
    what = f"{run_out.fraction:.4g} ran out of memory in launch {run_out.launch} of this log"
    if suggested_fraction(subject.launch, subject.sizing) is None:
        why = f"{what}, and the weights alone need {least_viable(minimum.high):.3f}"
        yield Finding(
            "no_workable_fraction", "error", f"{NONE_WORKS}: {why}.", (run_out.pos, *_budget_places(subject)), _REMEDY
        )
    else:
        yield Finding("runs_out_above", "note", f"{what}: {FLAG} has to stay below it.", (run_out.pos,))


def _budget_places(subject: Subject) -> tuple[Pos, ...]:
    known = (subject.sizing.avail, subject.sizing.total)
    return tuple(dict.fromkeys(each.pos for each in known if each is not None))


def without_fraction(remedy: str) -> str:
    """Return a remedy without the sentences that tell to raise or lower the fraction."""
    return " ".join(each for each in re.split(r"(?<=\.) (?=[A-Z])", remedy) if not _TURNS_FRACTION.search(each))


def is_said(diagnosis: Diagnosis) -> bool:
    """Return whether a diagnosis says itself that no fraction works."""
    return _SAID.search(diagnosis.remedy) is not None


def run_out_of(tried: Sequence[Explanation]) -> RunOut | None:
    """Return the least fraction with which an earlier try ran out of memory beside its pool.

    Not where another process held memory, or a cap set the pool.
    """
    found = [
        RunOut(fraction, each.launch.number, each.launch.outcome.evidence[0])
        for each in tried
        if each.diagnosis is not None
        and is_for_want_of_memory(each.diagnosis, each.sizing)
        and each.launch.outcome.kind == "failed"
        and (fraction := fraction_used(each.sizing)) is not None
    ]
    return min(found, key=lambda each: each.fraction, default=None)


def is_for_want_of_memory(diagnosis: Diagnosis, sizing: Sizing) -> bool:
    """Return whether the device itself ran out of memory beside the pools, so that a higher fraction would, too.

    Not where a pool ran out of tokens, slots or states; not where another process held memory, or a cap set the pool.
    """
    is_foreign = any(finding.id == "foreign_process" for finding in diagnosis.findings)
    is_device = diagnosis.cause in OUT_OF_MEMORY_AFTER_POOL and (diagnosis.direction == "lower" or is_said(diagnosis))
    return is_device and not is_foreign and sizing.bound_by != "max_total_tokens"


def is_again(earlier: Launch, launch: Launch, packs: Packs) -> bool:
    """Return whether a launch is another try of an earlier one: of the same file, with the same arguments but for the fraction."""
    shared = {node.file for node in earlier.nodes} & {node.file for node in launch.nodes}
    ours, theirs = (_lasting(each.args.values, packs) for each in (earlier, launch))
    return bool(shared and ours) and ours == theirs


def _lasting(values: Mapping[str, ArgValue], packs: Packs) -> dict[str, ArgValue]:
    """Return the arguments that do not differ from run to run, but for the fraction."""
    noise = (*packs.noise_args, FLAG)
    return {name: value for name, value in values.items() if not any(fnmatchcase(name, each) for each in noise)}
