"""What a log must not give away: keys, passwords, tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence

from logscope.packs import Secret

REDACTED = "<redacted>"


def redact(text: str, secrets: Sequence[Secret]) -> str:
    """Replace what must not be shown by ``<redacted>``."""
    lower = text.lower()
    for secret in secrets:
        if secret.may_stand_in(lower) and secret.regex.search(text):
            text = secret.regex.sub(lambda match, secret=secret: _redacted(match, secret), text)  # type: ignore[misc] # bound here
    return text


def _redacted(match: re.Match[str], secret: Secret) -> str:
    value = match["secret"]
    if not value or (secret.keep is not None and secret.keep.search(value)):
        return match[0]
    start, end = match.start("secret") - match.start(), match.end("secret") - match.start()
    return match[0][:start] + REDACTED + match[0][end:]
