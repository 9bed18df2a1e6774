"""Launches that are to be taken as a measure: they have to have worked."""

from __future__ import annotations

from logscope.commands import _shared as shared
from logscope.errors import UsageError
from logscope.model import Launch
from logscope.packs import Packs
from logscope.reading import Reading, read_launches


def launches_that_worked(logs: list[str], packs: Packs, otherwise: str) -> list[Launch]:
    """Return the last launch of each log; logs of the nodes of one launch are one.

    Args:
        otherwise: what is not to be had of a launch that did not become ready.

    Raises:
        UsageError: one did not.
    """
    from logscope.checker import last_of_each  # when a command runs: see ``commands.check``

    reading = Reading(packs)
    launches = last_of_each(read_launches(logs, reading))
    shared.warn_of_problems(reading, quiet=False)
    failed = [launch.source for launch in launches if launch.outcome.kind != "ready"]
    if failed:
        what = f"{', '.join(failed)} did not become ready: {otherwise}"
        raise UsageError(f"{what}\n  do: give logs of launches that worked")
    for launch in launches:
        if launch.ended is not None and launch.ended.kind == "failed":
            where = launch.ended.evidence[0] if launch.ended.evidence else launch.source
            shared.say(f"{where}: it became ready, and failed later; take a launch that did not if you can")
    return launches
