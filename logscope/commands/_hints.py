"""What ``explain`` is told beside the log: values to try, values that are claimed, and bytes per token."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from logscope.budget import NotModelled, read_model_config
from logscope.errors import UsageError
from logscope.explainer import GivenCell, ModelConfig, OtherLog, Source
from logscope.packs import Packs
from logscope.reading import Reading, read_launches
from logscope.server_args import ArgValue, read_value
from logscope.sizing import size_up


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
    """Refuse two sources of bytes per token, and a number that is none.

    Raises:
        UsageError: more than one is given, or bytes without end.
    """
    if cell_bytes is not None and not math.isfinite(cell_bytes):
        raise UsageError(
            f"--cell-bytes {cell_bytes:g} is no number of bytes\n  do: give one, such as --cell-bytes 70272"
        )
    given = [
        name
        for name, value in (("--cell-bytes", cell_bytes), ("--like", like), ("--model-config", model_config))
        if value
    ]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} both give bytes per token\n  do: take one of them")


def find_source(cell_bytes: float | None, like: str | None, model_config: Path | None, packs: Packs) -> Source | None:
    """Return what the user gave to tell bytes per token, None if that is nothing.

    Raises:
        UsageError: the other log has no pool line, or the model's configuration never gives a number.
    """
    if cell_bytes is not None:
        return GivenCell(cell_bytes, f"--cell-bytes {cell_bytes:g}")
    if like is not None:
        return _from_log(like, packs)
    return None if model_config is None else _from_config(model_config)


def _from_log(path: str, packs: Packs) -> Source:
    for launch in reversed(read_launches([path], Reading(packs))):
        sizing = size_up(launch)
        if sizing.cell is not None:
            return OtherLog(f"--like {path}", launch, sizing)
    raise UsageError(f"{path} has no pool line with tokens and size\n  do: take a log that got as far as the KV cache")


def _from_config(path: Path) -> Source:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}\n  do: give the model's config.json") from error
    facts = read_model_config(text, str(path))
    if facts.unmodelled is not None:
        raise UsageError(
            f"{path}: {NotModelled(facts.unmodelled)}\n  do: give --cell-bytes, or --like a log of this model"
        )
    return ModelConfig(f"--model-config {path}", facts)
