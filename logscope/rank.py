"""The rank tag of SGLang's log prefix: which process speaks."""

from __future__ import annotations

import re
from functools import total_ordering

from msgspec import Struct

_PART = re.compile(r"(?P<name>ATTN_CP|MOE_DP|DP|PP|TP|EP|gpu(?:_id)?=)(?P<number>\d+)$")
_FIELD_OF = {
    "DP": "dp",
    "PP": "pp",
    "TP": "tp",
    "EP": "ep",
    "ATTN_CP": "attn_cp",
    "MOE_DP": "moe_dp",
    "gpu_id=": "gpu",
    "gpu=": "gpu",
}


@total_ordering
class Rank(Struct, frozen=True):
    """One process and its coordinates. None means "not printed", never 0.

    Equality is that of ``node`` and the whole ``tag``; order is numeric (TP2 before TP10). A launch on one device prints no tag at
    all: its rank has the empty tag.
    """

    tag: str = ""
    node: int | None = None
    dp: int | None = None
    pp: int | None = None
    tp: int | None = None
    ep: int | None = None
    attn_cp: int | None = None
    moe_dp: int | None = None
    gpu: int | None = None
    extra: str = ""

    @property
    def label(self) -> str:
        """The tag for people; the implicit single rank is called "(no tag)"."""
        tag = self.tag or "(no tag)"
        return tag if self.node is None else f"node {self.node} {tag}"

    def answers_to(self, name: str) -> bool:
        """Whether a user means this rank by ``name``: its whole tag or one word of it, in any case."""
        wanted, own = " ".join(name.upper().split()), self.tag.upper()
        return wanted == own or wanted in own.split()

    def __lt__(self, other: Rank) -> bool:
        return self._key() < other._key()

    def _key(self) -> tuple[int | str, ...]:
        numbers = (self.node, self.dp, self.pp, self.attn_cp, self.moe_dp, self.tp, self.ep, self.gpu)
        return (*(-1 if number is None else number for number in numbers), self.extra, self.tag)


def parse_rank(tag: str, node: int | None = None) -> Rank:
    """Read a tag such as "DP0 TP10 EP10", "gpu_id=3", "gpu=3" or "DisaggregationMode.DECODE TP1"; unknown words are kept in ``extra``."""
    numbers: dict[str, int] = {}
    extra: list[str] = []
    words = tag.split()
    for word in words:
        part = _PART.match(word)
        if part is None:
            extra.append(word)
        else:
            numbers[_FIELD_OF[part["name"]]] = int(part["number"])
    return Rank(tag=" ".join(words), node=node, extra=" ".join(extra), **numbers)
