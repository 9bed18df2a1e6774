"""The command line was not understood, or an argument does not fit the others, the model or the device."""

from __future__ import annotations

import difflib
import re

from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import divisors_text, number, quoted
from logscope.words import clip

ID = "bad_argument"
_CHOICE = re.compile(r"invalid choice: '?(?P<wrong>[^' ]*)'? \(choose from (?P<choices>[^)]*)\)")
_NOT_DIVISIBLE = re.compile(
    r"(?P<size>\d+)\)? (?:is not|must be) divisible by (?:[a-zA-Z_ ]*)(?:[(=]| is )?(?P<ranks>\d+)\b"
)
_TOO_LONG = re.compile(
    r"context_length \((?P<asked>\d+)\) is greater than the derived context_length \((?P<derived>\d+)\)"
)
_ALLOWING = re.compile(r"set the env var (?P<setting>\w+=\w+)")
_LONGEST = 240
_FLAG = re.compile(r"--[a-z][\w-]*")


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis: what was said of which argument."""
    if not case.tells(ID):
        return None
    message = (case.said.string("message") or quoted(case)).strip().rstrip(".")
    if _TOO_LONG.search(message):
        message = message.partition(". ")[0]  # the rest of it is in the remedy
    message = clip(message, _LONGEST).rstrip(". ")
    what = (
        "the command line was not understood"
        if case.said.pattern.id == "failure.bad_argument"
        else "an argument was refused"
    )
    return Diagnosis(ID, f"{what}: {message}", None, _remedy(case))


def _remedy(case: Case) -> str:
    text = case.said.string("message") or case.message
    choice = _CHOICE.search(text)
    if choice:
        known = re.findall(r"[\w.-]+", choice["choices"])
        near = difflib.get_close_matches(choice["wrong"], known, n=1)
        return f"Did you mean {near[0]}?" if near else ""
    too_long = _TOO_LONG.search(text)
    if too_long:
        allowing = _ALLOWING.search(text)
        anyway = (
            f" To serve longer ones all the same, which the model was not made for, set {allowing['setting']}."
            if allowing
            else ""
        )
        whose = "draft model's" if "Target model's" in text else "model's"
        return f"Set --context-length to {too_long['derived']}, the {whose} own, or less; or leave it out.{anyway}"
    sizes = _other_sizes(case, text)
    if sizes:
        return sizes
    flag = _FLAG.search(text)
    if "unrecognized arguments" in text and flag:
        return f"This release does not know {flag[0]}: see --help of the release that runs, flags are renamed between releases."
    return ""


def _other_sizes(case: Case, text: str) -> str:
    """Name the tensor parallel sizes that divide what the one in force does not; empty where the line is not about that size."""
    found, ranks = _NOT_DIVISIBLE.search(text), number(case, "tp_size")
    if found is None or ranks is None or int(found["ranks"]) != ranks:
        return ""
    size = int(found["size"])
    choices = divisors_text(size, int(ranks))
    return f"Choose a --tp-size (now {ranks:g}) that divides {size}: {choices}. It has to divide the model's other sizes, too."
