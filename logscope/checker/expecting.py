"""Read what a rule looks at and what it asks for: the keys of ``select`` and ``expect``, with all that is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from math import inf
from typing import cast, get_args

from logscope.checker.amounts import UNIT_WORDS, read_amount, read_bound
from logscope.checker.possible import contradiction, is_settled
from logscope.checker.types import Bound, Expect, Quantifier, Select, Source
from logscope.checker.vocabulary import Vocabulary
from logscope.packs import Place
from logscope.packs.values import FileValues, Table, suggestion

_UNKNOWN = "unknown_memory_lines"
_QUANTIFIERS: tuple[Quantifier, ...] = get_args(Quantifier)
_KINDS = ("equals", "reach", "present", "absent", "sequence", "identity", "coverage", _UNKNOWN, "unchanged")
_BESIDE = {"ranks": "reach", "within": "reach", "until": "absent"}  # keys that say more of another one
_LISTS = ("present", "absent", "sequence", "unchanged")
_SELECT_KEYS = f"{' '.join(get_args(Source))} field worker rank role"
_EXPECT_KEYS = " ".join((*_QUANTIFIERS, *_KINDS, *_BESIDE))
_OPTIONS: Mapping[Source, tuple[str, ...]] = {
    "event": ("field", "worker", "rank", "role"), "phase": ("field", "worker", "rank", "role"), "ledger": ("worker", "rank"),
    "arg": (), "launch": (),
}  # fmt: skip


class ExpectReader:
    """Reads ``select`` and ``expect`` of the rules of one file; problems go to the ``FileValues``."""

    def __init__(self, values: FileValues, words: Vocabulary) -> None:
        self.values = values
        self.words = words

    def select(self, rule: Table, place: Place) -> Select | None:
        """Return what a rule looks at; None if it names nothing, or something that does not exist."""
        if "select" not in rule:
            return None
        values, at = self.values, self.values.key_place(place, "select")
        table = values.table(rule, "select", place)
        values.check_keys(table, _SELECT_KEYS, at, "'select'")
        sources = [source for source in get_args(Source) if source in table]
        if len(sources) != 1:
            what = f"'select' names {len(sources)} sources"
            values.problem(at, what, f"name one of {', '.join(get_args(Source))}")
            return None
        source = cast("Source", sources[0])
        name, field = values.text(table, source, at, needed=True), values.text(table, "field", at)
        for key in ("field", "worker", "rank", "role"):
            if key in table and key not in _OPTIONS[source]:
                allowed = ", ".join(_OPTIONS[source]) or "nothing else"
                values.problem(at, f"'{key}' does not go with '{source}'", f"beside it may stand {allowed}")
        problem = self.words.refuse_select(source, name, field) if name else None
        if problem is not None:
            values.problem(at, problem.what, problem.do)
            return None
        worker = values.choice(table, "worker", ("target", "draft"), at, None)
        rank, role = (values.text(table, key, at) or None for key in ("rank", "role"))
        if rank is not None and not any(letter.isdigit() for letter in rank):
            values.problem(
                at, f"rank = {rank!r} is no tag of a rank", 'write it as the log does, such as  rank = "TP3"'
            )
        return Select(source, name, self.words.field_name(source, name, field), worker, rank, role) if name else None

    def expect(self, rule: Table, select: Select | None, place: Place) -> Expect:
        """Return what a rule asks for."""
        values, at = self.values, self.values.key_place(place, "expect")
        table = values.table(rule, "expect", place)
        values.check_keys(table, _EXPECT_KEYS, at, "'expect'")
        self._check_kind(table, at, has_select="select" in rule)
        self._check_words(table, at)
        if select is not None:
            self._check_values(table, select, at)
        bounds = {key: self._bound(table, key, select, at) for key in _QUANTIFIERS if key in table}
        crossed = contradiction(bounds)
        if crossed is not None:
            one, other = (f"{key} = {bounds[key].text!r}" for key in crossed)
            values.problem(
                at, f"{one} and {other} can never hold together", "mend one of them, or make two rules of them"
            )
        return Expect(
            bounds=bounds,
            equals=str(table["equals"]) if "equals" in table else None,
            reach=values.text(table, "reach", at) or None,
            all_ranks=values.choice(table, "ranks", ("all", "any"), at, "any") == "all",
            within_s=self._within(table, at),
            present=values.texts(table, "present", at),
            absent=values.texts(table, "absent", at),
            until=values.text(table, "until", at) or None,
            sequence=values.texts(table, "sequence", at),
            identity=values.choice(table, "identity", ("kv_budget",), at, None),
            coverage=self._plain(table, "coverage", at, of_share=True) if "coverage" in table else None,
            unknown_lines=self._plain(table, _UNKNOWN, at, of_share=False) if _UNKNOWN in table else None,
            unchanged=self._unchanged(table, at),
        )

    def _check_kind(self, table: Table, at: Place, *, has_select: bool) -> None:
        """Refuse a rule that asks for nothing, or for several things; and keys that say more of what is not asked for."""
        bounds = [key for key in _QUANTIFIERS if key in table]
        kinds = [key for key in _KINDS if key in table and not (key == _UNKNOWN and "coverage" in table)]
        asked = [*(["a bound"] if bounds else []), *kinds]
        if len(asked) != 1:
            what = (
                f"'expect' asks for {len(asked)} things: {', '.join(asked)}" if asked else "'expect' asks for nothing"
            )
            self.values.problem(at, what, f"ask for one of: a bound ({', '.join(_QUANTIFIERS)}), {', '.join(_KINDS)}")
        for key, other in _BESIDE.items():
            if key in table and other not in table:
                self.values.problem(
                    at, f"'{key}' goes with '{other}', which is not there", f"add {other}, or take {key} out"
                )
        needs_select = bool(bounds) or "equals" in table
        if needs_select and not has_select:
            what = "a bound needs 'select'" if bounds else "'equals' needs 'select'"
            self.values.problem(at, what, 'add  select = { event = "...", field = "..." }')
        if asked and has_select and not needs_select:
            self.values.problem(at, f"'select' says nothing to {asked[0]}", "take select out, or ask for a bound")

    def _check_words(self, table: Table, at: Place) -> None:
        """Refuse empty lists, and words that name no event, finding or cause."""
        for key in (*_LISTS, "reach", "until"):
            if key in table and not any(self.values.texts(table, key, at)):
                self.values.problem(at, f"'{key}' names nothing", f"name an event, or take {key} out")
        for key in ("present", "absent", "sequence", "reach", "until"):
            of_ranks = key == "sequence" or (key == "reach" and table.get("ranks") == "all")
            for word in self.values.texts(table, key, at):
                problem = (
                    self.words.refuse_word(word, events_only=key in ("sequence", "reach", "until")) if word else None
                )
                if problem is None and of_ranks:
                    problem = self.words.refuse_of_ranks(word)
                if problem is not None:
                    self.values.problem(at, problem.what, problem.do)
                elif key in ("present", "absent") and self.words.is_anything(word):
                    what = f"'{word}' is every event: {'some are' if key == 'absent' else 'one is'} always there"
                    self.values.problem(at, what, 'name what is meant, such as "failure.*"')
                elif key == "absent" and (stop := self.values.text(table, "until", at)) and fnmatchcase(stop, word):
                    what = f"'{word}' is there whenever '{stop}' is reached: it can never hold"
                    self.values.problem(at, what, "name another event")
                elif key == "sequence" and "*" in word:
                    self.values.problem(at, f"'{word}' is not one event", "name the events of a sequence one by one")

    def _check_values(self, table: Table, select: Select, at: Place) -> None:
        """Refuse what selected values can never be."""
        asked = [key for key in (*_QUANTIFIERS, "equals") if key in table and key != "count"]
        if asked and select.source == "event" and not select.field:
            names = ", ".join(self.words.events[select.name].fields) or "none: it can be counted"
            self.values.problem(at, f"'{asked[0]}' needs a field of {select.name}", f"fields are {names}")
            return
        problem = self.words.refuse_equals(select, str(table["equals"])) if "equals" in table else None
        if problem is not None:
            self.values.problem(at, problem.what, problem.do)

    def _within(self, table: Table, at: Place) -> float | None:
        if "within" not in table:
            return None
        amount = read_amount(self.values.text(table, "within", at))
        if amount is None or amount.dimension != "s" or amount.value <= 0:
            self.values.problem(at, f"within is {table['within']!r}", 'write a time, such as  within = "12 min"')
        return amount.value if amount else None

    def _unchanged(self, table: Table, place: Place) -> tuple[str, ...]:
        words = self.values.texts(table, "unchanged", place)
        for word in words:
            if word and word not in self.words.unchanged:
                what = f"nothing called '{word}' is compared"
                self.values.problem(place, what, suggestion(word, self.words.unchanged))
        return words

    def _plain(self, table: Table, key: str, place: Place, *, of_share: bool) -> Bound:
        """Return a bound of a share (in percent) or a count, which is compared with no baseline."""
        text = self.values.text(table, key, place)
        bound = read_bound(text, of_share=of_share)
        amount = bound.amount if bound else None
        if (
            bound is None
            or bound.from_baseline
            or amount is None
            or amount.dimension != ("percent" if of_share else "")
        ):
            example = ">= 98 %" if of_share else "== 0"
            self.values.problem(place, f"{key} = {text!r} is no bound of it", f'write  {key} = "{example}"')
            return Bound(">=", None)
        if is_settled(bound, signed=False, most=1 if of_share else inf):
            self._impossible(key, text, place)
        return bound

    def _bound(self, table: Table, key: Quantifier, select: Select | None, place: Place) -> Bound:
        """Return a bound; refuse what is none, what has another unit than the value, and what nothing or everything satisfies."""
        values, text = self.values, self.values.text(table, key, place)
        bound = read_bound(text)
        if bound is None:
            what = f"{key} = {text!r} is no bound"
            values.problem(place, what, f'write  {key} = ">= 9.5 GiB"; units are {UNIT_WORDS}')
            return Bound(">=", None)
        if select is None or (select.source == "event" and not select.field and key != "count"):
            return bound  # told already
        dimension = "" if key == "count" else self.words.dimension(select)
        unit = bound.amount.dimension if bound.amount else dimension
        if unit != dimension and not (unit == "percent" and bound.from_baseline and dimension != "text"):
            what = f"{key} = {text!r} compares {unit or 'a plain number'} with {dimension or 'a plain number'}"
            values.problem(place, what, _with_unit(key, text, unit, dimension))
        elif dimension == "text":
            values.problem(place, f"{key} = {text!r} compares texts", 'write  equals = "..."')
        elif key == "count" and _is_single(select) and is_settled(bound, signed=False, most=1):
            what = f"count = {text!r} can never hold, or always does: {select.name} is one value"
            values.problem(place, what, f'write  each = "{text}"  to compare the value itself')
        elif is_settled(bound, signed=_has_sign(key, select, dimension)):
            self._impossible(key, text, place)
        elif bound.operator == "!=" and dimension in ("bytes", "s"):
            values.problem(place, f"{key} = {text!r} always holds: printed numbers are rounded", "take <= or >=")
        return bound

    def _impossible(self, key: str, text: str, place: Place) -> None:
        what = f"{key} = {text!r} can never hold, or always does"
        self.values.problem(place, what, "mend the bound: no such value is below 0, or above 100 %")


def _is_single(select: Select) -> bool:
    """Return whether a launch has at most one such value: an argument, a figure of the whole launch."""
    return select.source == "arg" or (select.source == "launch" and select.name not in ("left_free", "tokens"))


def _with_unit(key: str, text: str, unit: str, dimension: str) -> str:
    """Return how to write a bound whose unit is not the value's."""
    if dimension == "text":
        return 'write  equals = "..."'
    units = {"tokens": "tokens", "bytes": "GiB", "s": "s"}
    if not unit:
        return f'write  {key} = "{text.strip()} {units[dimension]}"'
    return f"write it in {units[dimension]}" if dimension else "write it without a unit"


def _has_sign(key: Quantifier, select: Select, dimension: str) -> bool:
    """Return whether values may be negative: memory that is given back, arguments such as -1."""
    is_of_values = key not in ("count", "spread")
    return is_of_values and (dimension == "bytes" or (dimension == "" and select.source in ("arg", "event")))
