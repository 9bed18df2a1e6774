"""The checkpoint does not fit the model as it was built: a name that is not there, or another shape."""

from __future__ import annotations

import re

from logscope.causes._place import is_loading
from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import argument, divisors_text, number, on_rank, quoted, settings

ID = "weight_mismatch"
_BY_PHASE = ("failure.key_error", "failure.shape_mismatch")
_ALWAYS = ("AssertionError", "KeyError")  # in loaders they are about names and shapes
_ABOUT_WEIGHTS = re.compile(r"weight|param|shape|size|tensor|checkpoint|dtype|scale", re.IGNORECASE)
_FAMILIES = (
    (("experts", "scale"), "scales of quantized experts: the quantization in force is not that of the checkpoint"),
    (("scale",), "scales of quantized weights: the quantization in force is not that of the checkpoint"),
    (("experts",), "weights of experts"),
    (("embed_tokens",), "the embedding, whose size is that of the vocabulary"),
    (("lm_head",), "the output head, whose size is that of the vocabulary"),
    (("lora",), "weights of an adapter"),
    (("vision",), "the vision part of the model"),
)


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis: the name or the shapes, and what was in force that decides over them."""
    if not case.tells(ID) and not _is_while_loading(case):
        return None
    sentence = f"the weights do not fit the model{on_rank(case)}: {_what(case)}"
    family = _family(case)
    sentence += f" ({family})" if family else ""
    now = settings(case, "quantization", "load_format", "dtype")
    sentence += f"; in force are {now}" if now else ""
    return Diagnosis(ID, sentence, None, _remedy(case))


def _is_while_loading(case: Case) -> bool:
    """Return whether an exception of a kind that weights cause rose while they were loaded."""
    if not is_loading(case) or case.said.pattern.cause is not None:
        return False
    name = (case.said.string("exception") or "").rpartition(".")[2]
    if case.said.pattern.id != "failure.exception":
        return case.said.pattern.id in _BY_PHASE
    return name in _ALWAYS or _ABOUT_WEIGHTS.search(case.said.string("message") or "") is not None


def _what(case: Case) -> str:
    key, parameter = case.said.string("key"), case.said.string("parameter")
    expected, found = case.said.string("expected"), case.said.string("found")
    if key:
        return f"the checkpoint has {key}, the model that was built has no such parameter"
    if expected and found and case.said.pattern.id == "failure.weight_mismatch":
        return f"{parameter + ' of the ' if parameter else 'the '}checkpoint has shape {found}, the model {expected}"
    return quoted(case)


def _family(case: Case) -> str:
    name = (case.said.string("key") or case.said.string("parameter") or "").lower()
    return next((text for words, text in _FAMILIES if all(word in name for word in words)), "")


def _remedy(case: Case) -> str:
    if case.said.pattern.id == "failure.weight_partition":
        ranks = number(case, "tp_size")
        now = f" (now {ranks:g})" if ranks else ""
        blocks = _blocks(case, ranks)
        if blocks and ranks:
            choices = divisors_text(blocks, int(ranks))
            return f"Choose a --tp-size{now} that divides {blocks}, the number of blocks: {choices}. Memory is irrelevant here."
        return f"Choose a smaller --tp-size{now} that divides it, or --ep-size for experts. Memory is irrelevant here."
    return (
        "Check that the checkpoint is complete and of this architecture, that --quantization and --load-format are its own, and that "
        "this release supports it. Loading never finished: memory is irrelevant here."
    )


def _blocks(case: Case, ranks: float | None) -> int | None:
    """Return how many blocks of a quantization a weight has over all ranks; None where it is not split by --tp-size alone."""
    found, block = case.said.string("found") or "", case.said.string("expected") or ""
    is_split_otherwise = (number(case, "ep_size") or 1) != 1 or argument(case, "enable_dp_attention") is True
    if not ranks or is_split_otherwise or not (found.isdecimal() and block.isdecimal()):
        return None
    whole, rest = divmod(int(found) * int(ranks), int(block))
    return whole if whole and not rest else None
