"""Find regexes that run away on text made for it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache

import regex

ADVERSARIAL_TIMEOUT_S = 0.2
_TORTURE = (" ", "a", "0", "a ", "0.", "=,", "0, ", "[", "(", "x=1, ")
_TORTURE_LENGTH = 3000
_WORD = re.compile(r"\w+\W*")
_MOST_WORDS = 6
_MOST_BEGINS = 3
_PLAIN_REPEATS = (12, 18, 24, 30, 100, 1000)  # in steps: Python's re cannot be stopped
_PLAIN_BUDGET_S = 0.05


@lru_cache(maxsize=4096)
def runaway_text(compiled: regex.Pattern[str], seeds: tuple[str, ...]) -> str | None:
    """Return a text whose repetition a form's regex does not get through in time, None if there is none.

    Args:
        compiled: the regex.
        seeds: lines that fit it: long runs are put into them, and they are left unfinished.
    """
    for seed, text in _tortures(seeds):
        run = text * (_TORTURE_LENGTH // len(text))
        try:
            for begin in _begins(seed):
                compiled.search(f"{begin}{run}\0", timeout=ADVERSARIAL_TIMEOUT_S)
            compiled.search(f"{seed}{run}\0{seed}\0", timeout=ADVERSARIAL_TIMEOUT_S)
        except TimeoutError:
            return text
    return None


@lru_cache(maxsize=1024)
def plain_runaway_text(compiled: re.Pattern[str], seeds: tuple[str, ...]) -> str | None:
    """Return what ``runaway_text`` does, for a regex that runs without a time limit: of the envelope, and of built-in forms."""
    for seed, text in _tortures(seeds):
        for repeats in _PLAIN_REPEATS:
            for begin in _begins(seed):
                begun = time.thread_time()
                compiled.search(f"{begin}{text * repeats}\0")
                if time.thread_time() - begun > _PLAIN_BUDGET_S:
                    return text
    return None


def _tortures(seeds: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (line, text to repeat): texts that bad regexes are known for, and the words of the line itself."""
    for seed in seeds:
        words: list[str] = sorted(set(_WORD.findall(seed)), key=len)[:_MOST_WORDS]
        yield from ((seed, text) for text in dict.fromkeys([*_TORTURE, *words]))


def _begins(seed: str) -> list[str]:
    """Return how a line begins, up to its first words, its middle and its end: a run comes next."""
    starts = [match.start() for match in _WORD.finditer(seed)][:_MOST_BEGINS]
    return [seed[:cut] for cut in sorted({0, *starts, len(seed) // 2, len(seed)})]
