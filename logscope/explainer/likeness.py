"""What two launches must agree in for a token to take as many bytes on a rank of the one as of the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from logscope.budget.architectures import HEADS, LATENT, SPARSE
from logscope.model import Launch
from logscope.server_args import ArgValue, arg_number
from logscope.sizing import DRAFT_COUNTED_SINCE, Sizing

ELEMENT_BYTES: Mapping[str, float] = {
    "auto": 2, "bfloat16": 2, "bf16": 2, "float16": 2, "half": 2, "fp8_e4m3": 1, "fp8_e5m2": 1, "float32": 4, "float": 4,
    "torch.bfloat16": 2, "torch.float16": 2, "torch.float32": 4, "torch.float8_e4m3fn": 1, "torch.float8_e5m2": 1,
}  # fmt: skip
_SNAPSHOT = re.compile(r"models--(?:[^/]*--)?([^/]+)/snapshots/[^/]+/?$")
_NO_DRAFT = ("NONE", "NGRAM")  # NGRAM has no model, and so no layers
_SHAPING = (  # other arguments that change what a token takes, compared where both launches print them
    *("json_model_override_args", "enable_mla", "disable_mla", "attn_cp_size"),
    *("swa_full_tokens_ratio", "disable_hybrid_swa_memory"),
)
_UNSET: tuple[ArgValue, ...] = (None, False, "", "{}")


class Fact(Struct, frozen=True):
    """Something that bytes per token depend on: ``key`` is compared, ``shown`` is what it is called."""

    key: object
    shown: str


def stated(launch: Launch, name: str, otherwise: ArgValue) -> ArgValue:
    """Return an argument in force, else as typed, else ``otherwise``, its default; None where the log has no arguments."""
    if name in launch.args.values:
        return launch.args.values[name]
    if launch.command is not None:
        return launch.command.flags.get(name, otherwise)
    return otherwise if launch.args.values and launch.args.complete else None


def number_of(launch: Launch, name: str) -> int | None:
    """Return a parallel size, at least 1; None where the log does not tell."""
    count = arg_number({name: stated(launch, name, 1)}, name)
    return max(1, int(count)) if count is not None else None


def tp_of(launch: Launch) -> tuple[int | None, bool]:
    """Return tp_size, and whether arguments tell it; else as many as tags name (there may be more)."""
    size = number_of(launch, "tp_size")
    if size is not None:
        return size, True
    return max((rank.tp + 1 for rank in launch.ranks if rank.tp is not None), default=None), False


def architecture_of(launch: Launch) -> str | None:
    """Return the target's class, as the end of its load prints it; None where no line does, or it is no architecture's own class."""
    for event, worker in zip(launch.events, launch.workers, strict=True):
        name = event.string("model_type")
        if name and event.pattern.phase == "load_weights" and worker != "draft":
            return None if name.startswith("Transformers") else name
    return None


def draft_of(launch: Launch) -> str | None:
    """Return the algorithm of a draft model, "" without one; None where the log does not tell."""
    name = stated(launch, "speculative_algorithm", "none")
    if name is None and "speculative_algorithm" not in launch.args.values:
        return "EAGLE" if "draft" in launch.workers else None
    text = str(name or "none").upper()
    return "" if text in _NO_DRAFT else text


def printed_dtype(launch: Launch) -> str | None:
    """Return the dtype of the KV cache as a line of the launch prints it; None where none does."""
    for event in launch.events:
        if event.pattern.id in ("kv_cache.dtype", "kv_cache.allocated") and (dtype := event.string("dtype")):
            return dtype
    return None


def differences(here: Launch, there: Launch, sizing: Sizing) -> Iterator[str]:
    """Yield what differs between two launches so that the bytes per token of the second need not be those of the first.

    Args:
        here: the launch that is explained; ``there``: the other one, with the figures ``sizing``.

    Yields:
        "tp_size 8 here, 4 there".

    Source: the formulas of ``logscope.budget.cells`` say what the cell size depends on; page_size is not among it, for the padding of
    a pool is known.
    """
    for ours, theirs in _pairs(here, there).values():
        if ours is not None and theirs is not None and ours.key != theirs.key:
            yield f"{ours.shown} here, {theirs.shown} there"
    yield from _other_release(here, there, sizing)
    yield from _other_draft(here, there, sizing)


def not_compared(here: Launch, there: Launch) -> Iterator[str]:
    """Yield the names of what one of the logs does not tell."""
    for name, (ours, theirs) in _pairs(here, there).items():
        if ours is None or theirs is None:
            yield name
    if not is_draft_free(here) and draft_of(here) is None:
        yield "speculative_algorithm"


def is_draft_free(launch: Launch) -> bool:
    """Return whether the budget surely pays for the target's tokens only: no draft, or a release before 0.5.14."""
    return draft_of(launch) == "" or not launch.releases.overlaps(DRAFT_COUNTED_SINCE, None)


def _pairs(here: Launch, there: Launch) -> dict[str, tuple[Fact | None, Fact | None]]:
    """Return the facts of both launches by name; None where a log does not tell one."""
    by_printed = all(_width(launch) is not None for launch in (here, there))
    ours, theirs = _facts(here, by_printed), _facts(there, by_printed)
    names = [name for name in ours if name != "architecture" or (ours[name] and theirs[name])]
    if any(architecture_of(launch) in LATENT for launch in (here, there)):
        names.remove("tp_size")  # a latent row is the same on every rank
    found = {name: (ours[name], theirs[name]) for name in names}
    for name in _SHAPING:
        if name in here.args.values and name in there.args.values:
            found[name] = (_shaping(here, name), _shaping(there, name))
    return found


def _facts(launch: Launch, by_printed: bool) -> dict[str, Fact | None]:
    name, stages = architecture_of(launch), number_of(launch, "pp_size")
    return {
        "architecture": Fact(name, f"architecture {name}") if name else None,
        "model_path": _model(launch),
        "tp_size": _attention_tp(launch),
        "pp_size": Fact(stages, f"pp_size {stages}") if stages is not None else None,
        "kv_cache_dtype": _cache_dtype(launch, by_printed),
    }


def _model(launch: Launch) -> Fact | None:
    """Return the last part of the model's path; of a snapshot in a cache of downloads, the name of the model."""
    path = stated(launch, "model_path", None)
    if not isinstance(path, str) or not path:
        return None
    found = _SNAPSHOT.search(path)
    name = found[1] if found else path.rstrip("/").rpartition("/")[2]
    return Fact(name.lower(), f"model {name}")


def _attention_tp(launch: Launch) -> Fact | None:
    size, is_stated = tp_of(launch)
    if size is None:
        return None
    if stated(launch, "enable_dp_attention", False) is not True:
        return Fact(size, f"tp_size {size}" if is_stated else f"{size} ranks")
    groups = number_of(launch, "dp_size") or 1
    return Fact(size / groups, f"tp_size {size} with dp_size {groups} in DP attention")


def _width(launch: Launch) -> str | None:
    """Return the dtype of the KV cache where the log surely tells it: a line prints it, or it was not left to SGLang."""
    dtype = printed_dtype(launch) or str(stated(launch, "kv_cache_dtype", "auto"))
    return dtype if dtype in ELEMENT_BYTES and dtype != "auto" else None


def _cache_dtype(launch: Launch, by_printed: bool) -> Fact | None:
    if by_printed and (dtype := _width(launch)) is not None:
        return Fact(ELEMENT_BYTES[dtype], f"a KV cache of {dtype.removeprefix('torch.')}")
    asked = stated(launch, "kv_cache_dtype", "auto")
    if asked is None:
        return None
    if asked != "auto":
        return Fact(asked, f"kv_cache_dtype {asked}")
    # "auto" follows the model's dtype, or the checkpoint's quantization
    of_model, method = str(stated(launch, "dtype", "auto")), stated(launch, "quantization", None)
    shown = f"kv_cache_dtype auto with dtype {of_model}{f' and quantization {method}' if method else ''}"
    return Fact(("auto", ELEMENT_BYTES.get(of_model, of_model), method), shown)


def _shaping(launch: Launch, name: str) -> Fact:
    value = launch.args.values[name]
    return Fact(None if value in _UNSET else value, f"{name} {value}")


def _other_release(here: Launch, there: Launch, sizing: Sizing) -> Iterator[str]:
    """Say so where the releases differ surely, and what a token takes is not known to be the same in both."""
    name = architecture_of(there)
    is_plain = name in HEADS or (name in LATENT and name not in SPARSE)
    if (is_plain and _target_pools(sizing) == 1) or here.releases.overlaps(there.releases.since, there.releases.until):
        return
    if not here.releases.empty and not there.releases.empty:
        yield f"SGLang {here.releases} here, {there.releases} there"


def _other_draft(here: Launch, there: Launch, sizing: Sizing) -> Iterator[str]:
    """Say so where the budget pays for a draft's tokens in the one launch, and in the other for none or another's."""
    ours, theirs, cell = draft_of(here), draft_of(there), sizing.cell
    if ours is None or cell is None:
        return
    counts_there = cell.charged != cell.size
    if is_draft_free(here):
        if counts_there and _target_pools(sizing) > 1:
            yield "no draft's tokens are paid for here, a draft's there"
    elif not counts_there:
        yield f"a draft ({ours}) whose tokens may be paid for here, none there"
    elif ours != theirs:
        yield f"speculative_algorithm {ours} here, {theirs} there"


def _target_pools(sizing: Sizing) -> int:
    """Return how many pools of the target's tokens a rank has."""
    pools = sizing.ranks[0].pools if sizing.ranks else ()
    return sum(pool.worker != "draft" for pool in pools)
