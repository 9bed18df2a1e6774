"""Logs whose lines are JSON objects around the message, as Docker, Loki and Fluent Bit write them: told, but not unwrapped."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

_KEYS = ("log", "message", "msg", "line", "MESSAGE", "textPayload")  # where collectors put the message
_MOST_LINES = 20


def wrapped_in(tail: bytes) -> tuple[str, bool] | None:
    """Return the key of the message where every line of the end of a log is a JSON object, and whether messages end their own lines.

    None for any other log, and where no known key is in most of the objects.
    """
    lines = [line for line in tail.split(b"\n")[-_MOST_LINES:] if line.strip()]
    lines = lines[1:] if len(lines) > 1 else lines  # the first may have lost its beginning
    if not lines or not all(line.lstrip().startswith(b"{") for line in lines):
        return None
    objects = list(_objects(lines))
    found = Counter(key for each in objects for key in _KEYS if isinstance(each.get(key), str))
    if not found or not objects:
        return None
    key, count = found.most_common(1)[0]
    if count < len(objects) - 1:
        return None
    texts = [text for each in objects if isinstance(text := each.get(key), str)]
    return key, any(text.endswith("\n") for text in texts)


def _objects(lines: list[bytes]) -> Iterator[dict[str, object]]:
    """Yield the lines that are whole objects: the last may be cut."""
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value
