"""Take out of a finished report what names a machine or a person: ``--share``. Secrets are gone already: they are redacted on reading.

Texts keep what explains a launch: the last part of a path, the port of an address, loopback addresses.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence

from logscope.model import Event, Launch
from logscope.report.mapping import map_report
from logscope.report.types import Report
from logscope.server_args import Command, ServerArgs

_URL = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]+://(?:<redacted>|\[[0-9A-Fa-f:.%]+\]|[^\s'\"`<>()\[\]{}])+")
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@(?:<host>|[A-Za-z][\w-]*(?:\.[\w-]+)*)")
_PATH = re.compile(
    r"(?<![\w.<>/$-])(?:~[\w.-]*(?:/[^\s/'\"`\\,;:()\[\]{}<>|]+)+|(?:/+[^\s/'\"`\\,;:()\[\]{}<>|]+){2,}|/root\b)/*"
)
_WINDOWS_PATH = re.compile(r"(?:(?<!\w)[A-Za-z]:|(?<!\\)\\)\\+(?:[^\s\\/'\"`:*?<>|]+[\\/]+)*[^\s\\/'\"`:*?<>|]+")
_HOME = re.compile(r"((?:^|[/\\])(?:home|Users)[/\\]+)[^\s/\\'\"`:]+")
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)")
_IPV6 = re.compile(
    r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{0,4})(?:%\w+)?(?![\w:])"
)
_TOP_DOMAINS = (
    "com|net|org|io|ai|dev|cloud|edu|gov|mil|int|info|biz|co|me|tech|app|local|localdomain|internal|intranet|intra|lan|corp|"
    "home|svc|cluster|arpa|de|cn|uk|fr|jp|kr|in|eu|ch|nl|se|us|ca|au|sg|tw|hk|il|br|ru|example|test"
)
_DOMAIN = re.compile(rf"(?<![\w./-])(?:[A-Za-z0-9][A-Za-z0-9_-]*\.)+(?:{_TOP_DOMAINS})(?![\w-]|\.\w)")
_EC2 = re.compile(r"(?<![\w-])ip(?:-\d{1,3}){4}(?:\.[\w.-]*\w)?")
_WITH_PORT = re.compile(
    r"(?<![\w./:<-])(?!(?:localhost|port|pid|line|rank|tokens?|size)\b)[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9](?=:\d{4,5}(?!\w))"
)
_NAMED = re.compile(
    r"(?i)(\b(?:host|hostname|nodename)['\"]?\s*[=:]\s*['\"]?)(?!localhost\b|None\b|null\b)[a-z][\w.-]*"
)
_CUT = re.compile(r"(?<![^\s'\"(])[^\s'\"(]{4,}?(?= ?(?:\.\.\.|…))")
_REST_OF_HOST = re.compile(r"<host>(?:\.[A-Za-z][\w-]*)+")  # its domain
_HOST_KEYS = ("host", "hostname", "addr", "address", "node", "nodelist", "node_ip", "host_ip")
_USER_KEYS = ("user", "username", "logname")
_KEPT = ("localhost", "none", "null", "*", "true", "false", "")
_SHORTEST_NAME = 3


class Scrubber:
    """Takes names out of texts: those that look like one, and those that it was told of (files, hosts, origins)."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._known: re.Pattern[str] | None = None

    def learn(self, name: str, instead: str) -> None:
        """Take this name out of every text from now on."""
        if len(name) >= _SHORTEST_NAME and name.lower() not in _KEPT and name not in self._names:
            self._names[name] = instead
            longest_first = sorted(self._names, key=len, reverse=True)
            self._known = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w-])")

    def learn_file(self, name: str) -> None:
        """Show a file by the last part of its name where that is a path from the root: it may hold spaces."""
        if name.startswith(("/", "~")) or re.match(r"[A-Za-z]:[\\/]|\\\\", name):
            self.learn(name, _last_part(name))

    def learn_values(self, values: Mapping[str, object]) -> None:
        """Learn the hosts and users that arguments or environment variables name."""
        for key, value in values.items():
            word = key.lower()
            is_host = any(word == part or word.endswith(f"_{part}") for part in _HOST_KEYS)
            if isinstance(value, str) and (is_host or word in _USER_KEYS):
                name = re.sub(r"^\w+://|:\d+$", "", value.strip("'\""))
                if re.search(r"[A-Za-z]", name) and "/" not in name:
                    self.learn(name, "<host>" if is_host else "<user>")

    def learn_event(self, item: object) -> None:
        """Learn from the arguments and commands of an event."""
        for value in item.values.values() if isinstance(item, Event) else ():
            if isinstance(value, ServerArgs):
                self.learn_values(value.values)
            elif isinstance(value, Command):
                self.learn_values({**value.flags, **value.env})

    def scrub(self, text: str) -> str:
        """Return a text without host names, addresses, users, URLs, and paths from the root but for their last parts."""
        if self._known is not None:
            text = self._known.sub(lambda match: self._names[match[0]], text)
            text = _CUT.sub(self._cut, text)
            text = _REST_OF_HOST.sub("<host>", text)
        text = _MAIL.sub("<user>@<host>", _URL.sub(_url, text))
        if "/" in text or "\\" in text or "~" in text:
            text = _WINDOWS_PATH.sub(lambda match: _last_part(match[0]), text)
            text = _PATH.sub(_path, text)
            text = _HOME.sub(r"\1<user>", text)
        text = _IPV6.sub(_address, _IPV4.sub(_address, text))
        text = _DOMAIN.sub("<host>", _EC2.sub("<host>", text))
        return _NAMED.sub(r"\1<host>", _WITH_PORT.sub("<host>", text))

    def _cut(self, match: re.Match[str]) -> str:
        return next((new for name, new in self._names.items() if name.startswith(match[0])), match[0])


def share_report(report: Report, launches: Sequence[Launch], files: Iterable[str] = ()) -> Report:
    """Return the report without what names a machine or a person.

    Args:
        report: of any command.
        launches: whose origins (pods, containers, hosts), hosts and users are taken out by name.
        files: that were read besides the logs.
    """
    scrubber = Scrubber()
    nodes = [node for launch in launches for node in launch.nodes]
    for file in (*(node.file for node in nodes), *files):
        scrubber.learn_file(file)
    if report.checked is not None:
        scrubber.learn_file(report.checked.rules)
    for number, origin in enumerate(dict.fromkeys(node.origin for node in nodes), 1):
        scrubber.learn(f"({origin})", f"(<origin {number}>)")
        if re.search(
            r"[A-Za-z].*\d|\d.*[A-Za-z]", origin
        ):  # the name of a pod or a host; "sglang" is a word like others
            scrubber.learn(origin, f"<origin {number}>")
    for launch in launches:
        for event in launch.events:
            scrubber.learn_event(event)
    return map_report(report, scrubber.scrub)


def _last_part(path: str) -> str:
    parts = [part for part in re.split(r"[/\\]+", path) if part]
    is_home = len(parts) < 2 or (len(parts) == 2 and parts[0] in ("home", "Users"))
    return "<home>" if is_home or parts[-1].startswith("~") else parts[-1]


def _path(match: re.Match[str]) -> str:
    """Return the last part of a path; where that is a placeholder, the one before it, too."""
    is_cut = match[0].endswith("/") and match.string[match.end() : match.end() + 1] == "<"
    return f"{_last_part(match[0])}{'/' if is_cut else ''}"


def _url(match: re.Match[str]) -> str:
    """Return a placeholder for a URL, and the punctuation of the sentence behind it."""
    rest = match[0][len(match[0].rstrip(";,.")) :]
    return f"<url>{rest}"


def _address(match: re.Match[str]) -> str:
    """Return a placeholder for an address; what is none ("10:00:05") stays, and what is the same on every machine."""
    try:
        address = ipaddress.ip_address(match[0].partition("%")[0])
    except ValueError:
        return match[0]
    return match[0] if address.is_loopback or address.is_unspecified else "<ip>"
