"""What is wrong in pattern files: collected, then raised together, in the order of the files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from logscope.errors import PackError
from logscope.packs.types import Place


class Problem(Struct, frozen=True):
    """Something that logscope cannot use, where it stands, and what to do."""

    place: Place
    what: str
    do: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}\n  do: {self.do}"


def pack_error(problems: Iterable[Problem], files: Sequence[str]) -> PackError:
    """Return the error that lists problems in the order of ``files``, and of the lines in each."""
    order = {name: number for number, name in enumerate(files)}
    ordered = sorted(problems, key=lambda problem: (order.get(problem.place.file, -1), problem.place.line))
    return PackError([str(problem) for problem in ordered])
