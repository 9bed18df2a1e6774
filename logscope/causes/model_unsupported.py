"""This release, or its libraries, does not know the model or its quantization; or the model's own code is not allowed to run."""

from __future__ import annotations

from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import argument, because, quoted

ID = "model_unsupported"
_IS_TRUSTED = (
    "The two do not fit: see that the line is of this launch, and of this model; a process or library that loads it by itself may not "
    "pass the flag on, which the traceback tells."
)


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis of a model that is not known."""
    if not case.tells(ID):
        return None
    kind, model = case.said.pattern.id.rpartition(".")[2], case.said.string("model")
    quantization = case.said.string("quantization")
    if kind == "remote_code":
        sentence = f"the model{f' {model}' if model else ''} has code of its own, which was not allowed to run"
        if argument(case, "trust_remote_code") is not True:
            return Diagnosis(ID, sentence, None, "Start with --trust-remote-code, once you trust that code.")
        return Diagnosis(ID, f"{sentence}, although trust_remote_code is set in this log", None, _IS_TRUSTED)
    if kind == "model_unsupported" and model:
        sentence = f"this release of SGLang, or the installed transformers, does not know the model {model}: {quoted(case, 160)}"
    elif quantization:
        sentence = f"the quantization {quantization} is not supported: {quoted(case, 160)}"
    else:
        sentence = because(case)
    return Diagnosis(
        ID, sentence, None, "Use a release of SGLang, and of transformers, that supports it. It is not about memory."
    )
