"""What ``explain`` is told beside the log: values to try, values that are claimed, and bytes per token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from logscope.budget import (
    Interval,
    KvModel,
    ModelFacts,
    NotModelled,
    by_release,
    cell_size,
    exact,
    kv_model,
    read_model_config,
    stored_cell_size,
    union,
)
from logscope.errors import UsageError
from logscope.model import Launch
from logscope.packs import Packs
from logscope.reading import Reading, read_launches
from logscope.server_args import ArgValue, arg_number, read_value
from logscope.sizing import Cell, size_up


def pairs(words: list[str] | None, option: str) -> Mapping[str, ArgValue]:
    """Read NAME=VALUE words; flags may be written as typed on a command line, ``--mem-fraction-static=0.8``.

    Raises:
        UsageError: a word is no pair, or a name stands twice.
    """
    found: dict[str, ArgValue] = {}
    for word in words or []:
        name, separator, value = word.partition("=")
        name = name.strip().removeprefix("--").replace("-", "_")
        if not separator or not name or not value.strip():
            raise UsageError(f"{option} {word}: no NAME=VALUE\n  do: {option} mem_fraction_static=0.85")
        if name in found:
            raise UsageError(f"{option} has {name} twice\n  do: give it once, or run twice")
        found[name] = read_value(value.strip())
    return found


def check_one_source(cell_bytes: float | None, like: str | None, model_config: Path | None) -> None:
    """Refuse two sources of bytes per token.

    Raises:
        UsageError: more than one is given.
    """
    given = [
        name
        for name, value in (("--cell-bytes", cell_bytes), ("--like", like), ("--model-config", model_config))
        if value
    ]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} both give bytes per token\n  do: take one of them")


def find_hint(
    cell_bytes: float | None, like: str | None, model_config: Path | None, launch: Launch, packs: Packs
) -> Cell | None:
    """Return bytes per token from what the user gave, None if that is nothing.

    Raises:
        UsageError: the other log has no pool line, or the model's configuration does not give a number.
    """
    if cell_bytes is not None:
        return Cell(exact(cell_bytes), exact(cell_bytes), "given")
    if like is not None:
        return _from_log(like, packs)
    return None if model_config is None else _from_config(model_config, launch)


def _from_log(path: str, packs: Packs) -> Cell:
    for launch in reversed(read_launches([path], Reading(packs))):
        cell = size_up(launch).cell
        if cell is not None:
            return replace(cell, source="other log")
    raise UsageError(f"{path} has no pool line with tokens and size\n  do: take a log that got as far as the KV cache")


def _from_config(path: Path, launch: Launch) -> Cell:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}\n  do: give the model's config.json") from error
    model = _model_of(launch, read_model_config(text, str(path)))
    if isinstance(model, NotModelled):
        raise UsageError(f"{path}: {model}\n  do: give --cell-bytes, or --like a log of this model")
    stored, charged = (_over_releases(size, model, launch) for size in (stored_cell_size, cell_size))
    for found in (stored, charged):
        if isinstance(found, NotModelled):
            raise UsageError(f"{path}: {found}\n  do: give --cell-bytes, or --like a log of this model")
    assert isinstance(stored, Interval) and isinstance(charged, Interval), "refused above"
    return Cell(stored, charged, "model config")


def _model_of(launch: Launch, facts: ModelFacts) -> KvModel | NotModelled:
    """Return what the cell size depends on: the model, and the arguments of the launch."""
    args = launch.args.values

    def number(name: str) -> int:
        return int(arg_number(args, name) or 1)

    def text(name: str) -> str | None:
        value = args.get(name)
        return str(value) if value is not None else None

    has_own_draft = args.get("speculative_draft_model_path") not in (None, args.get("model_path"))
    return kv_model(
        facts,
        tp=number("tp_size"),
        dp_attention=number("dp_size") if args.get("enable_dp_attention") is True else 1,
        pp=number("pp_size"),
        kv_cache_dtype=text("kv_cache_dtype"),
        model_dtype=text("dtype"),
        draft_layers=0 if has_own_draft else facts.mtp_layers or 0,
        speculative=text("speculative_algorithm"),
    )


def _over_releases(
    size: Callable[[KvModel, str], int | NotModelled], model: KvModel, launch: Launch
) -> Interval | NotModelled:
    """Return a size for all releases that the launch may be of."""

    def of(release: str) -> Interval | NotModelled:
        found = size(model, release)
        return found if isinstance(found, NotModelled) else exact(found)

    return union(by_release(of, launch.releases.since, launch.releases.until))
