"""The model, or a file of it, is not where the launch looks: on the disk or on the hub."""

from __future__ import annotations

from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import argument, quoted

ID = "weights_missing"
_ACCESS = ("Gated", "gated", "401", "403", "Unauthorized")
_OFFLINE = ("LocalEntryNotFound", "OfflineMode", "couldn't connect", "connection error")


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis of a model that is not found."""
    if not case.tells(ID):
        return None
    model, file = case.said.string("model"), case.said.string("file")
    path = argument(case, "model_path")
    if file and model:
        sentence = f"{file} is not in {model}"
    elif file or model:
        sentence = f"{file or model} was not found"
    else:
        sentence = f"the model{f' {path}' if isinstance(path, str) else ''} was not found"
    return Diagnosis(ID, f"{sentence}: {quoted(case)}", None, _remedy(case.message))


def _remedy(message: str) -> str:
    if any(word in message for word in _ACCESS):
        return "Accept the model's terms on the hub, and give the token of that account (HF_TOKEN)."
    if any(word in message for word in _OFFLINE):
        return "The hub was not reached, or HF_HUB_OFFLINE is set: download the model first, and give its folder as --model-path."
    return "Check --model-path: as the server sees it, inside its container, and with all files of the checkpoint."
