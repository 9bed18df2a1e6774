"""What the pattern files say, as plain data. ``docs/patterns.md`` is the reference for every key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

if TYPE_CHECKING:
    from regex import Match as RegexMatch
    from regex import Pattern as CompiledRegex

_NAMED_GROUP = re.compile(r"\(\?P<(\w+)>")
_TWIN = "__"  # ends the name of a group that another one has, too; a test holds that no built-in name contains it
SHORTEST_LITERAL = 5  # characters: a shorter one is not rare

Edge = Literal["begin", "end", "point"]
SaidBy = Literal["every rank", "rank 0", "main", "bar", "any"]
Ends = Literal["ready", "failed", "failed_unless_progress", "stopped"]
Blame = Literal["cause", "banner", "consequence"]


class Place(Struct, frozen=True):
    """Where in the pattern files something stands."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Phase(Struct, frozen=True):
    """One phase of a launch, or of what comes after it. ``frequent``: lines that a log may hold by the million."""

    id: str
    title: str
    order: int
    place: Place
    item: str | None = None
    pair_by: tuple[str, ...] = ()
    dense: bool = False
    once: bool = False
    per_worker: bool = False
    draft_model_types: tuple[str, ...] = ()
    frequent: tuple[str, ...] = ()


class Field(Struct, frozen=True):
    """One value of an event; ``result`` is its name in results, with the base unit."""

    name: str
    unit: str
    result: str
    optional: bool = False
    item: str | None = None
    default: str | None = None
    key: str | None = None
    map: Mapping[str, str] = field(default_factory=dict)


class Sample(Struct, frozen=True):
    """A real line and the values that must be read from it, as printed."""

    line: str
    want: Mapping[str, object]
    place: Place


class Pairs(Struct, frozen=True):
    """The order-free form: ``key kv value`` pairs between separators, after the literal."""

    sep: str
    kv: str
    without: tuple[str, ...] = ()


class Form(Struct, frozen=True):
    """One wording of an event. ``since`` is the first release with it, ``until`` the first without it; None is open.

    ``is_builtin``: it comes with logscope, where it is known that its regex runs away on no text.
    """

    contains: tuple[str, ...]
    place: Place
    since: str | None = None
    until: str | None = None
    regex: str | None = None
    pairs: Pairs | None = None
    open_end: bool = False
    set: Mapping[str, str] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    rejects: tuple[str, ...] = ()
    is_builtin: bool = False

    def compiled(self) -> CompiledRegex[str]:
        """Return the compiled regex, which has to reach the end of the text unless the end is open."""
        assert self.regex is not None
        return compile_regex(self.regex, self.open_end)

    def plain(self) -> re.Pattern[str] | None:
        """Return the same as Python's own regex, which has no time limit; None where it must have one, or Python does not know its syntax.

        It compiles in a fourth of the time and matches in a tenth: on small logs 0.05x of ``import pandas``.
        """
        assert self.regex is not None
        return _plain(self.regex, self.open_end) if self.is_builtin else None

    def captured(self, match: re.Match[str] | RegexMatch[str]) -> dict[str, str]:
        """Return the names of a match that have a text, each with the group that holds it."""
        groups = [group for group, text in match.groupdict().items() if text is not None]
        return {(group.partition(_TWIN)[0] if self.is_builtin else group): group for group in groups}


@lru_cache(maxsize=4096)
def compile_regex(text: str, open_end: bool = True) -> CompiledRegex[str]:
    """Compile a form's regex, once. Unless its end is open it has to reach the end of a text."""
    from regex import compile as compile_text  # the wheel is built where this library is not installed

    return compile_text(_anchored(text, open_end))


@lru_cache(maxsize=1024)
def _plain(text: str, open_end: bool) -> re.Pattern[str] | None:
    counts: dict[str, int] = {}

    def own_name(match: re.Match[str]) -> str:
        counts[match[1]] = count = counts.get(match[1], 0) + 1
        return match[0] if count == 1 else f"(?P<{match[1]}{_TWIN}{count}>"

    try:  # in Python a name is that of one group
        return re.compile(_NAMED_GROUP.sub(own_name, _anchored(text, open_end)))
    except re.error:
        return None


def _anchored(text: str, open_end: bool) -> str:
    return text if open_end else rf"(?:{text})\Z"


class Pattern(Struct, frozen=True):
    """One event: a thing that a launch says, in one or more wordings."""

    id: str
    phase: str
    place: Place
    means: str = ""
    edge: Edge = "point"
    said_by: SaidBy = "any"
    logged: bool = False
    contains: tuple[str, ...] = ()
    drift: bool = True
    fallback: bool = False
    closes: str | None = None
    worker: Literal["target", "draft"] | None = None
    opens_launch: bool = False
    progress: bool = True
    ends: Ends | None = None
    blame: Blame = "cause"
    cause: str | None = None
    fields: Mapping[str, Field] = field(default_factory=dict)
    forms: tuple[Form, ...] = ()

    @property
    def is_of_a_rank(self) -> bool:
        """Whether a rank says it, not a launcher or a progress bar, of which the rank is unknown."""
        return self.said_by in ("every rank", "rank 0")

    @property
    def literals(self) -> tuple[str, ...]:
        """Every literal that the event or one of its forms is gated by."""
        return tuple(dict.fromkeys([*self.contains, *(text for form in self.forms for text in form.contains)]))


class Prefix(Struct, frozen=True):
    """A declared piece around SGLang's message: what another program put in front, or SGLang's own prefix."""

    id: str
    pattern: str
    place: Place
    gate: str | None = None
    samples: tuple[Sample, ...] = ()
    rejects: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None

    @property
    def regex(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return _compiled(self.pattern)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile on first use: most logs need few of the prefixes and secrets, and to compile all takes 0.05x of ``import pandas``."""
    return re.compile(pattern)


class Block(Struct, frozen=True):
    """Lines that belong together, such as a Python traceback."""

    id: str
    begins: str
    continues: re.Pattern[str]
    closes: re.Pattern[str]
    place: Place


class Secret(Struct, frozen=True):
    """A text whose group ``secret`` is never shown; values that ``keep`` matches are no secrets.

    ``contains``: in lower case, what one of must stand in the text in any case, or the regex need not be tried.
    """

    id: str
    pattern: str
    keep_pattern: str | None
    place: Place
    samples: tuple[Sample, ...] = ()
    rejects: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()

    @property
    def regex(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return _compiled(self.pattern)

    @property
    def keep(self) -> re.Pattern[str] | None:
        """The compiled pattern of values that are no secrets."""
        return None if self.keep_pattern is None else _compiled(self.keep_pattern)

    def may_stand_in(self, lower: str) -> bool:
        """Return whether the regex is worth trying on a text in lower case: searching all regexes of secrets takes 16 us a line."""
        for word in self.contains:  # any() takes twice as long
            if word in lower:
                return True
        return not self.contains


class Envelope(Struct, frozen=True):
    """All that may stand around SGLang's message."""

    noise: tuple[Prefix, ...] = ()
    outer: tuple[Prefix, ...] = ()
    sglang: tuple[Prefix, ...] = ()
    suffix: tuple[Prefix, ...] = ()
    blocks: tuple[Block, ...] = ()
    secrets: tuple[Secret, ...] = ()


class Packs(Struct, frozen=True):
    """All pattern files: phases by id in launch order, patterns in file order, the envelope, flag aliases.

    ``noise_args`` are names of arguments (with stars) that differ from run to run, ``acts_on`` says what an argument acts on,
    ``arguments`` are all names that an argument of a server has had.
    """

    phases: Mapping[str, Phase]
    patterns: tuple[Pattern, ...]
    envelope: Envelope
    aliases: Mapping[str, str]
    files: tuple[str, ...]
    noise_args: tuple[str, ...] = ()
    acts_on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    arguments: frozenset[str] = frozenset()

    def phase_of(self, pattern: Pattern) -> Phase:
        """Return the phase that an event belongs to."""
        return self.phases[pattern.phase]

    def frequent_line(self, literal: str, but_of: str = "") -> tuple[Phase, str] | None:
        """Return the phase, which is not ``but_of``, and the text of a line by the million that holds a literal; None without one."""
        lines = ((phase, line) for phase in self.phases.values() if phase.id != but_of for line in phase.frequent)
        return next(((phase, line) for phase, line in lines if literal in line), None)
