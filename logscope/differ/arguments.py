"""Arguments, environment variables and facts of other lines that differ between two launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from logscope.differ.types import ArgChange, Change, Origin
from logscope.frames import arg_text
from logscope.model import Launch
from logscope.packs import Packs
from logscope.server_args import ArgValue

_PATHS = ("model_path", "tokenizer_path", "speculative_draft_model_path", "served_model_name")
_FACT_PHASES = (
    "server_args",
    "init_torch_distributed",
    "load_weights",
    "kv_cache",
    "cuda_graph",
    "warmup",
    "memory_pool",
)
_PLAIN_WORDS = frozenset({"size", "enable", "disable", "path", "max", "sglang"})
_NOT_FACTS = ("kind", "label", "what", "step", "said", "graph")


def changed_args(before: Launch, after: Launch, packs: Packs) -> list[ArgChange]:
    """Return the arguments and environment variables that differ; those that act on memory or time first, noise last."""
    found = [*_flags(before, after, packs), *_environment(before, after, packs)]
    return sorted(found, key=lambda arg: (arg.noise, not acts_on(arg.name, packs), arg.origin == "derived"))


def _flags(before: Launch, after: Launch, packs: Packs) -> Iterator[ArgChange]:
    first, second = _values(before), _values(after)
    if not first or not second:
        return
    for name in dict.fromkeys([*first, *second]):
        is_missing = name not in first or name not in second
        if is_missing and (before.args.values or after.args.values):
            continue  # another release has other arguments; the printed text is cut; or only what was typed is known of one
        values = [_shown(side, name) for side in (first, second)]
        if values[0] != values[1]:
            is_noise = _is_noise(name, values, packs)
            yield ArgChange(name, values[0], values[1], _origin(name, before, after), is_noise)


def _values(launch: Launch) -> Mapping[str, ArgValue]:
    """Return the arguments in force; as typed where the log does not print them."""
    if launch.args.values:
        return launch.args.values
    return launch.command.flags if launch.command else {}


def _shown(values: Mapping[str, ArgValue], name: str) -> str | None:
    return arg_text(values[name]) if name in values else None


def _origin(name: str, before: Launch, after: Launch) -> Origin | None:
    """Return who gave an argument: it was typed if a command has it, and none has another value than the one in force."""
    launches = [launch for launch in (before, after) if launch.command is not None]
    if not launches:
        return None
    typed = [launch for launch in launches if launch.command and name in launch.command.flags]
    is_in_force = all(_is_as_typed(launch, name) for launch in typed)
    return "typed" if typed and is_in_force else "derived"


def _is_as_typed(launch: Launch, name: str) -> bool:
    """Return whether the value in force is the one that was typed, as far as both are known; a path or name may be written otherwise."""
    assert launch.command is not None, "it was typed"
    typed, own = launch.command.flags[name], launch.args.values.get(name)
    numbers = (int, float)
    is_number = isinstance(typed, numbers) and isinstance(own, numbers)
    return not is_number or float(typed) == float(own)  # type: ignore[arg-type]


def _environment(before: Launch, after: Launch, packs: Packs) -> Iterator[ArgChange]:
    if before.command is None or after.command is None:
        return
    first, second = before.command.env, after.command.env
    for name in dict.fromkeys([*first, *second]):
        if first.get(name) != second.get(name):
            yield ArgChange(name, first.get(name), second.get(name), "environment", _matches(name, packs.noise_args))


def _is_noise(name: str, values: Sequence[str | None], packs: Packs) -> bool:
    if name in _PATHS:  # the same model in another place
        return len({(value or "").rstrip("/").rpartition("/")[2] for value in values}) == 1
    return _matches(name, packs.noise_args)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def acts_on(name: str, packs: Packs) -> tuple[str, ...]:
    """Return what an argument acts on, by the pattern files; empty where they do not say."""
    if name in packs.acts_on:
        return packs.acts_on[name]
    return next((terms for pattern, terms in packs.acts_on.items() if fnmatchcase(name, pattern)), ())


def are_one_setting(first: ArgChange, second: ArgChange, packs: Packs) -> bool:
    """Return whether two arguments set one thing: they act on the same first, and their names share a word that says something."""
    words = [{word.rstrip("s") for word in arg.name.lower().split("_")} - _PLAIN_WORDS for arg in (first, second)]
    terms = [acts_on(arg.name, packs)[:1] for arg in (first, second)]
    return terms[0] == terms[1] and bool(words[0] & words[1])


def changed_facts(changes: Sequence[Change]) -> list[ArgChange]:
    """Return what lines say in words and the other launch says otherwise, or not at all: backends, versions, warnings."""
    found: dict[tuple[str, str | None, str | None], ArgChange] = {}
    drafts = [change for change in changes if change.worker == "draft"]
    has_both = any(c.before is not None for c in drafts) and any(c.after is not None for c in drafts)
    for change in changes:
        is_one_sided = change.before is None or change.after is None
        if (change.worker == "draft" and not has_both) or (is_one_sided and "#" in change.role):
            continue  # what lines say of a draft that only one launch has, or once more
        is_text = change.unit == "" and change.delta is None
        if (
            not is_text
            or change.verdict != "changed"
            or change.phase not in _FACT_PHASES
            or change.field in _NOT_FACTS[:-2]
        ):
            continue
        name = _fact_name(change)
        before, after = _fact(change.before), _fact(change.after)
        found.setdefault((name, before, after), ArgChange(name, before, after, "log line", noise=False))
    return list(found.values())


def _fact_name(change: Change) -> str:
    """Name what a line says by the line and the field: "nccl_version", "load_weights model_type"."""
    event = change.event.partition(".")[2]
    event = change.phase if event in ("begin", "end") else event
    whose = "draft " if change.worker == "draft" else ""
    return (
        f"{whose}{event}"
        if change.field == "said" or event.endswith(change.field)
        else f"{whose}{event} {change.field}"
    )


def _fact(value: float | str | None) -> str | None:
    return None if value is None else str(value)
