"""The sides of a comparison: a file, a directory, several nodes ``node0.log,node1.log``, or one launch of a log ``run.log#2``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from logscope.errors import UsageError
from logscope.model import Launch
from logscope.reading import Reading, read_launches
from logscope.words import name_of


class SideSpec(Struct, frozen=True):
    """What the user named: the logs of one side, and which launch of them ("last", or a number)."""

    text: str
    paths: tuple[str, ...]
    launch: str


def read_spec(text: str) -> SideSpec:
    """Read ``run.log``, ``run.log#2`` or ``node0.log,node1.log``; a file that is called so is that file.

    Raises:
        UsageError: nothing is named.
    """
    if os.path.exists(text):  # noqa: PTH110 # any text may come
        return SideSpec(text, (text,), "last")
    body, mark, number = text.rpartition("#")
    launch = number if mark and number.isdigit() else "last"
    body = body if launch != "last" else text
    paths = tuple(part for part in body.split(",") if part)
    if not paths:
        raise UsageError(f"{text!r} names no log\n  do: give a file, such as run.log or run.log#2")
    return SideSpec(text, paths, launch)


def read_side(spec: SideSpec, reading: Reading) -> tuple[Launch, str]:
    """Return the launch that a side names, and what to call it; of several the last one by default, called by its number.

    Raises:
        SourceError, NoLaunchError, UsageError: it cannot be read, or there is no such launch.
    """
    launches = read_launches(list(spec.paths), reading)
    if len(spec.paths) > 1 and len(launches) > 1:
        raise UsageError(
            f"{spec.text}: {len(launches)} launches, not the nodes of one, by their server_args\n"
            "  do: name one launch on each side"
        )
    count = len(launches)
    if spec.launch != "last" and not 1 <= int(spec.launch) <= count:
        has = "is 1 launch" if count == 1 else f"are {count} launches"
        log = ",".join(spec.paths)
        raise UsageError(
            f"{log}: no launch {spec.launch!r}: there {has}\n  do: name one of them, such as {log}#{count}"
        )
    chosen = count - 1 if spec.launch == "last" else int(spec.launch) - 1
    if count == 1 or spec.launch != "last":
        return launches[chosen], spec.text
    where = f" ({name_of(launches[chosen])})" if Path(spec.text).is_dir() else ""
    return launches[chosen], f"{spec.text}#{chosen + 1}{where}"


def refuse_same(specs: Sequence[SideSpec], launches: Sequence[Launch]) -> None:
    """Refuse to compare a launch with itself under another name: ``run.log`` is the last launch in it.

    Raises:
        UsageError: two sides of the same log are one launch.
    """
    last, own = specs[-1], launches[-1]
    for spec, launch in zip(specs[:-1], launches[:-1], strict=True):
        is_other_name = spec.text != last.text and spec.paths == last.paths
        if is_other_name and launch.events[0].pos == own.events[0].pos:
            log = ",".join(spec.paths)
            raise UsageError(
                f"{spec.text} and {last.text} are one launch: {log} is the last in it\n  do: logscope diff {log}#1 {log}#2"
            )
