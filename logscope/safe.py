"""Text that comes from a log, made safe to show: it moves no cursor, gives no order to a CI system, and is no formula.

A log holds whatever clients and libraries wrote into it. Each output format escapes what it has to; here is what formats share.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS and the like: titles, links
    r"|\x1b[ -/]*[0-~]?"
)
_SPACES = re.compile(r"[\t\n\x0b\x0c\r\x1c-\x1f\x85\u2028\u2029]")
# C0, DEL and C1; marks, embeddings, overrides and isolates of writing direction; tags; what XML cannot hold
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_OLD_COMMANDS = re.compile(
    r"##(?=(?:vso|teamcity)?\[)"
)  # ##[error], ##vso[..]: GitHub and Azure obey them anywhere in a line
_COMMANDS = re.compile(r"^([^\S\n]*):(?=:)", re.MULTILINE)  # ::error::, also behind spaces
_IN_JSON = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d+)*|\.\d+)(?:[eE][+-]?\d+)?")


def clean(text: str) -> str:
    """Return a text as one line without escape sequences, control characters, overrides of direction, and old-style commands."""
    if not text.isprintable():
        text = _ESCAPES.sub("", text)
        text = _HIDDEN.sub("", _SPACES.sub(" ", text))
        text = _SURROGATES.sub("\ufffd", text)
    return _OLD_COMMANDS.sub("# #", text) if "##" in text else text


def without_commands(text: str) -> str:
    """Return lines of which none is a workflow command of GitHub Actions: "::error::x" becomes ": :error::x"."""
    return _COMMANDS.sub(r"\1: ", text) if "::" in text else text


def clean_lines(text: str) -> str:
    """Return lines that are safe to show; line ends and tabs stay."""
    lines = ("\t".join(map(clean, line.split("\t"))) for line in text.split("\n"))
    return without_commands("\n".join(lines))


def json_text(value: object, indent: int | None = None) -> str:
    """Write JSON in which what a terminal or a CI system would obey is escaped; what it means is the same."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if not text.isprintable():
        text = _IN_JSON.sub(lambda match: json.dumps(match[0])[1:-1], text)
    return _OLD_COMMANDS.sub(r"#\\u0023", text) if "##" in text else text


def spreadsheet_text(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: one that begins like one gets an apostrophe; numbers stay."""
    shown = clean(text)
    if shown == "-" or _NUMBER.fullmatch(shown):
        return shown
    begins = shown.lstrip()[:1] in ("=", "+", "-", "@") or text[:1] in ("\t", "\r", "\n")
    return f"'{shown}" if shown and begins else shown


def map_texts(value: object, change: Callable[[str], str]) -> object:
    """Return data for JSON with every text in it changed; keys stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: map_texts(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [map_texts(item, change) for item in value]
    return value
