"""The model, or a file of it, is not where the launch looks: on the disk or on the hub; or the hub does not give it."""

from __future__ import annotations

import re

from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import argument, quoted

ID = "weights_missing"
_REFUSALS = {
    "gated": re.compile(r"gatedrepo|\bgated\b|awaiting a review|is restricted", re.IGNORECASE),
    "denied": re.compile(r"\b40[13] client error|unauthorized|forbidden", re.IGNORECASE),
    "offline": re.compile(
        r"localentrynotfound|offlinemode|couldn't connect|connection ?error|timed out|max retries", re.IGNORECASE
    ),
}
_PATHS = ("model_path", "speculative_draft_model_path", "tokenizer_path", "lora_paths")


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis: what is missing, and which argument names it."""
    if not case.tells(ID):
        return None
    flags = _flags(case)
    return Diagnosis(ID, f"{_what(case, flags)}: {quoted(case)}", None, _remedy(case, flags))


def _flags(case: Case) -> list[str]:
    """Return the flags that may name what is missing: those whose path the line has; else that of the model and, if set, of the draft."""
    found = (case.said.string("model") or case.said.string("file") or "").strip("'\"`[]")
    paths = {name: str(argument(case, name) or "") for name in _PATHS}
    named = [name for name, path in paths.items() if path and found and _is_of(found, path)]
    if not named:
        named = ["model_path"]
        if paths["speculative_draft_model_path"] not in ("", paths["model_path"]):
            named.append("speculative_draft_model_path")
    elif "model_path" in named:
        named = ["model_path"]  # the tokenizer's path, and a draft's, are by default that of the model
    return [f"--{name.replace('_', '-')}" for name in named]


def _is_of(found: str, path: str) -> bool:
    """Return whether a path of the line is one of an argument: the same, a file in it, its folder in the hub's cache, or one of a list."""
    in_cache = f"models--{path.replace('/', '--')}/"
    return (
        found == path
        or found.startswith(f"{path.rstrip('/')}/")
        or in_cache in found
        or f"={found}" in path
        or f"'{found}'" in path
    )


def _refusal(case: Case) -> str | None:
    """Return why the hub does not give the model: "gated", "denied", "offline"; None for another reason."""
    if case.said.pattern.id != "failure.hub":
        return None
    return next((kind for kind, said in _REFUSALS.items() if said.search(case.message)), None)


def _what(case: Case, flags: list[str]) -> str:
    refusal = _refusal(case)
    model, file = case.said.string("model"), case.said.string("file")
    path = argument(case, "model_path")
    name = f"the model{f' {path}' if isinstance(path, str) and flags == ['--model-path'] else ''}"
    if refusal == "gated":
        return f"{name} is gated on the hub, and this launch has no access to it"
    if refusal == "denied":
        return f"the hub does not give {name}: there is none of this name, or it is private"
    if refusal == "offline":
        return f"the hub was not reached, and {name} is not in its local cache"
    if case.said.pattern.id == "failure.no_weight_files":
        return f"no weight files were found in {model or name}"
    if file and model:
        return f"{file} is not in {model}"
    if file or model:
        return f"{file or model} was not found"
    return f"{name} was not found"


def _remedy(case: Case, flags: list[str]) -> str:
    refusal, flag = _refusal(case), " and ".join(flags)
    if refusal == "gated":
        return "Request access on the model's page of the hub, and give the token of that account (HF_TOKEN)."
    if refusal == "denied":
        return f"Check the name in {flag}; for a private or gated model, give the token of an account that has access (HF_TOKEN)."
    if refusal == "offline":
        return f"The hub was not reached, or HF_HUB_OFFLINE is set: download the model first, and give its folder as {flag}."
    if case.said.pattern.id == "failure.no_weight_files":
        load_format = argument(case, "load_format")
        now = f" (now {load_format})" if isinstance(load_format, str) else ""
        return (
            f"Look into the folder of {flag}: it has no .safetensors, .bin or .pt files, or not those of --load-format{now}. A download "
            "that was stopped leaves none."
        )
    return f"Check {flag}: as the server sees it, inside its container, and with all files of the checkpoint."
