"""The sides of a comparison: a file, a directory, several nodes ``node0.log,node1.log``, or one launch of a log ``run.log#2``."""

from __future__ import annotations

import os
from dataclasses import dataclass

from logscope.commands._shared import choose
from logscope.errors import UsageError
from logscope.model import Launch
from logscope.reading import Reading, read_launches


@dataclass(frozen=True, slots=True)
class SideSpec:
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
    chosen = choose(len(launches), spec.launch)[0]
    is_one_of_several = len(launches) > 1 and spec.launch == "last"
    return launches[chosen], f"{spec.text}#{chosen + 1}" if is_one_of_several else spec.text
