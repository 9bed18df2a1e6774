"""Bytes per token from outside of a log: a number, another log, a model's configuration. None is taken against what the log says."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from logscope.amounts import cell_text
from logscope.budget import (
    Interval,
    KvModel,
    ModelFacts,
    NotModelled,
    by_release,
    cell_size,
    exact,
    kv_model,
    stored_cell_size,
    union,
)
from logscope.budget.architectures import LATENT
from logscope.explainer.likeness import (
    architecture_of,
    differences,
    is_draft_free,
    not_compared,
    number_of,
    stated,
    tp_of,
)
from logscope.model import Launch
from logscope.sizing import Cell, Sizing


class GivenCell(Struct, frozen=True):
    """Bytes per token and rank as somebody knows them."""

    size: float
    option: str = "--cell-bytes"


class OtherLog(Struct, frozen=True):
    """A launch with a pool line, and its figures."""

    option: str
    launch: Launch
    sizing: Sizing


class ModelConfig(Struct, frozen=True):
    """The facts of a model's config.json."""

    option: str
    facts: ModelFacts


Source = GivenCell | OtherLog | ModelConfig


class Hint(Struct, frozen=True):
    """Bytes per token from a source, held against a launch.

    Attributes:
        option: the source, as typed.
        cell: what the source says; None where it gives no number for this launch.
        conflicts: why it is not that of this launch, with both values each; then it must not be used.
        unchecked: what is not in one of the logs, so that it is taken on trust.
    """

    option: str
    cell: Cell | None
    conflicts: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


def hint_for(source: Source, launch: Launch, sizing: Sizing) -> Hint:
    """Return what a source says of the bytes per token of a launch, and what speaks against it.

    Args:
        sizing: the figures of the launch; its pool, where it is too small to tell a cell size, still bounds it.
    """
    if isinstance(source, GivenCell):
        hint = Hint(source.option, Cell(exact(source.size), exact(source.size), "given"))
    elif isinstance(source, OtherLog):
        hint = _of_other_log(source, launch)
    else:
        hint = _of_config(source, launch)
    beyond = _beyond_pool(hint.cell, sizing)
    return replace(hint, conflicts=(*hint.conflicts, beyond)) if beyond else hint


def with_hint(sizing: Sizing, hint: Hint | None) -> Sizing:
    """Return the figures with the bytes per token of a hint, where the log has none of its own and nothing speaks against it."""
    if hint is None or hint.cell is None or hint.conflicts or sizing.cell is not None:
        return sizing
    return replace(sizing, cell=hint.cell)


def _beyond_pool(cell: Cell | None, sizing: Sizing) -> str | None:
    """Say so where the pool of the launch is too small for its tokens by these bytes."""
    if cell is None or sizing.cell is not None or sizing.size is None or sizing.tokens is None:
        return None
    most = sizing.size.high / sizing.tokens.amount.low if sizing.tokens.amount.low > 0 else None
    if most is None or cell.size.low <= most:
        return None
    return f"the pool here has at most {most:,.0f} bytes for each of its tokens, not {cell_text(cell.size)}"


def _of_other_log(source: OtherLog, launch: Launch) -> Hint:
    cell = source.sizing.cell
    assert cell is not None, "selected so"
    charged = cell.size if is_draft_free(launch) else cell.charged
    return Hint(
        source.option,
        Cell(cell.size, charged, "other log"),
        tuple(differences(launch, source.launch, source.sizing)),
        tuple(not_compared(launch, source.launch)),
    )


def _of_config(source: ModelConfig, launch: Launch) -> Hint:
    served, own = source.facts.architectures[:1], architecture_of(launch)
    conflicts = (f"architecture {own} here, {served[0]} there",) if own and served and own != served[0] else ()
    model = _model_of(launch, source.facts)
    stored, charged = (
        model if isinstance(model, NotModelled) else _over_releases(size, model, launch)
        for size in (stored_cell_size, cell_size)
    )
    if isinstance(stored, NotModelled) or isinstance(charged, NotModelled):
        return Hint(source.option, None, conflicts or (str(stored if isinstance(stored, NotModelled) else charged),))
    return Hint(source.option, Cell(stored, charged, "model config"), conflicts, _unchecked(launch, source.facts))


def _unchecked(launch: Launch, facts: ModelFacts) -> tuple[str, ...]:
    """Return what the cell size depends on and the log does not tell: defaults stand in for it."""
    names = ["speculative_algorithm", "kv_cache_dtype", "pp_size"]
    if facts.architectures[0] not in LATENT:
        names.append("tp_size")
    missing = [name for name in names if stated(launch, name, "default") is None]
    return (*(() if architecture_of(launch) else ("architecture",)), *missing)


def _model_of(launch: Launch, facts: ModelFacts) -> KvModel | NotModelled:
    """Return what the cell size depends on: the model, and the arguments of the launch."""

    def text(name: str, otherwise: str | None) -> str | None:
        value = stated(launch, name, otherwise)
        return str(value) if value is not None else None

    tp, _ = tp_of(launch)
    if tp is None and facts.architectures[0] not in LATENT:
        return NotModelled("a launch whose tp_size is not in its log")
    path = stated(launch, "model_path", None)
    has_own_draft = stated(launch, "speculative_draft_model_path", None) not in (None, path)
    return kv_model(
        facts,
        tp=tp or 1,
        dp_attention=(number_of(launch, "dp_size") or 1) if stated(launch, "enable_dp_attention", False) is True else 1,
        pp=number_of(launch, "pp_size") or 1,
        kv_cache_dtype=text("kv_cache_dtype", "auto"),
        model_dtype=text("dtype", "auto"),
        draft_layers=0 if has_own_draft else facts.mtp_layers or 0,
        speculative=text("speculative_algorithm", None),
    )


def _over_releases(
    size: Callable[[KvModel, str], int | NotModelled], model: KvModel, launch: Launch
) -> Interval | NotModelled:
    """Return a size for all releases that the launch may be of."""

    def of(release: str) -> Interval | NotModelled:
        found = size(model, release)
        return found if isinstance(found, NotModelled) else exact(found)

    return union(by_release(of, launch.releases.since, launch.releases.until))
