"""``server_args`` as SGLang prints them, and the launch command as a shell echoes it.

SGLang to 0.5.18 prints a dataclass repr, ``ServerArgs(model_path='..', tp_size=8)``; from 0.5.19 a dict repr. Both may hold nested
reprs, enums and objects that are no Python literal, and both are often cut by a pager or a paste: what stands before the cut is kept.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

ArgValue = str | int | float | bool | None | tuple["ArgValue", ...]

_OPEN, _CLOSE = "([{<", ")]}>"
_ENVIRONMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)
_SHELL = re.compile(r"\d?>|&|\||;")
_CONTINUED = re.compile(r"\s+\\\s*$")
_ENTRY = re.compile(r"^sglang\.launch_server$|launch_server(\.py)?$|^sglang$")


LARGEST_NUMBER = 2**63
MOST_RANKS = 100_000


class ServerArgs(Struct, frozen=True):
    """The printed arguments: name -> value. ``complete`` is False when the text is cut; a value at the cut is left out."""

    values: Mapping[str, ArgValue] = field(default_factory=dict)
    complete: bool = True


class Command(Struct, frozen=True):
    """A launch command: what was typed. Flags are named like the fields of server_args."""

    env: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, ArgValue] = field(default_factory=dict)
    text: str = ""


def arg_number(values: Mapping[str, ArgValue], name: str) -> float | None:
    """Return a number among arguments, None where it is not there, no number, or none that a flag can have (infinite, 400 digits)."""
    value = values.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < LARGEST_NUMBER else None


def arg_count(values: Mapping[str, ArgValue], name: str) -> int:
    """Return a number of ranks or nodes among arguments; 1 where they do not say, or say what no cluster has."""
    count = arg_number(values, name)
    return int(count) if count is not None and 1 <= count <= MOST_RANKS else 1


def parse_server_args(text: str) -> ServerArgs:
    """Read ``ServerArgs(a=1, ...)`` or ``{'a': 1, ...}``, cut or whole.

    Values that are Python literals become Python values (lists and tuples become tuples); others stay as printed.
    """
    if text.startswith("{"):
        body, closing, is_pair = text[1:], "}", ":"
    else:
        body, closing, is_pair = text.partition("(")[2], ")", "="
    values: dict[str, ArgValue] = {}
    complete = False
    for part, ended_by in _split_top_level(body, closing):
        if ended_by == "":
            break  # cut: a value that may go on is not used
        name, separator, value = _partition_pair(part, is_pair)
        if separator:
            values[name] = read_value(value)
        complete = ended_by == closing
    return ServerArgs(values, complete)


def _partition_pair(part: str, is_pair: str) -> tuple[str, str, str]:
    name, separator, value = part.partition(is_pair)
    return name.strip().strip("'\""), separator, value.strip()


def _split_top_level(text: str, closing: str) -> Iterator[tuple[str, str]]:
    """Split at commas outside of brackets and quotes; yield (part, what ended it: "," or the closing bracket, "" at a cut)."""
    depth, quote, start, at = 0, "", 0, 0
    while at < len(text):
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif depth == 0 and char in (",", closing):
            yield text[start:at], char
            if char == closing:
                return
            start = at + 1
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE and not (char == ">" and text[at - 1] in "-="):
            depth -= 1
        at += 1
    yield text[start:], ""


def read_value(text: str) -> ArgValue:
    """Return the Python value of a literal, or the text itself."""
    try:
        return _freeze(ast.literal_eval(text), text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _freeze(value: object, text: str) -> ArgValue:
    if isinstance(value, (str, int, float)) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return tuple(_freeze(item, repr(item)) for item in value)
    return text  # dicts and sets are shown as printed


def parse_command(text: str, aliases: Mapping[str, str]) -> Command:
    """Read a launch command, ``ENV=1 python3 -m sglang.launch_server --tp 8 --mem-fraction-static=0.55``.

    Args:
        text: the command as the shell echoed it, without the prompt.
        aliases: flag (without dashes, ``-`` as ``_``) -> field of server_args, where they differ (``tp`` -> ``tp_size``).
    """
    words = list(_shell_words(text))
    env: dict[str, str] = {}
    start = 0
    for start, word in enumerate(words):  # noqa: B007 # start is used below
        if _ENTRY.search(word):
            break
        assignment = _ENVIRONMENT.fullmatch(word)
        if assignment and "/" not in assignment["name"]:
            env[assignment["name"]] = assignment["value"]
    return Command(env, _read_flags(words[start + 1 :], aliases), text)


def _shell_words(text: str) -> Iterator[str]:
    """Yield the words of a command: not what the shell takes for itself, nor the words of a flag whose quotes are cut."""
    lexer = shlex.shlex(_CONTINUED.sub("", text), posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    held: list[str] = []  # the last flag and its values
    try:
        for word in lexer:
            if _SHELL.match(word):
                break
            if word.startswith("--"):
                yield from held
                held = []
            held.append(word)
    except ValueError:  # an unclosed quote: the command is cut
        return
    yield from held


def _read_flags(words: list[str], aliases: Mapping[str, str]) -> dict[str, ArgValue]:
    flags: dict[str, ArgValue] = {}
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not word.startswith("--") or word == "--":
            continue
        name, has_value, value = word[2:].partition("=")
        taken = [value] if has_value else []
        while not has_value and at < len(words) and not _is_flag(words[at]):
            taken.append(words[at])
            at += 1
        key = name.replace("-", "_")
        values = tuple(read_value(item) for item in taken)
        flags[aliases.get(key, key)] = True if not values else values[0] if len(values) == 1 else values
    return flags


def _is_flag(word: str) -> bool:
    return word.startswith("-") and not re.fullmatch(r"-[\d.]+", word)
