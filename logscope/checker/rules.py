"""Read a rules file, and refuse with file:line what it cannot mean: docs/check.md is the reference for every key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast, get_args

from packaging.version import InvalidVersion, Version

from logscope.checker.expecting import ExpectReader
from logscope.checker.types import Lane, Rule, RuleFile, RuleTest, Status
from logscope.checker.vocabulary import Vocabulary
from logscope.errors import RulesError
from logscope.model import Level
from logscope.packs import Packs, Place
from logscope.packs.problems import Problem
from logscope.packs.values import FileValues, Table, suggestion

VERSION = 1
_RULE_KEYS = "id why level when optional select expect test"
_RANGE = re.compile(r"\s*(?:>=\s*(?P<since>[\w.]+))?\s*,?\s*(?:<\s*(?P<until>[\w.]+))?\s*")
_SYNTAX = re.compile(r"\(at line (?P<line>\d+), column \d+\)")


def load_rules(path: Path, packs: Packs) -> RuleFile:
    """Read a rules file.

    Raises:
        RulesError: it cannot be read, is no TOML, or holds something that could never be true; with all problems of the file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RulesError(
            [f"{path}: cannot be read: {error}\n  do: give a rules file; `logscope rules learn LOG` writes one"]
        ) from error
    return read_rules(text, str(path), packs)


def read_rules(text: str, name: str, packs: Packs) -> RuleFile:
    """Read the text of a rules file; see ``load_rules``."""
    try:
        document: Table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _SYNTAX.search(str(error))
        place = Place(name, int(at["line"]) if at else 1)
        raise RulesError([f"{place}: not TOML: {error}\n  do: mend the syntax"]) from error
    problems: list[Problem] = []
    found = _Reader(FileValues(name, text, problems), Vocabulary(packs)).read(document)
    if problems:
        raise RulesError([str(problem) for problem in sorted(problems, key=lambda each: each.place.line)])
    return found


class _Reader:
    """Reads one document; problems go to the ``FileValues``."""

    def __init__(self, values: FileValues, words: Vocabulary) -> None:
        self.values = values
        self.words = words
        self.expecting = ExpectReader(values, words)
        self.ids: dict[str, Place] = {}
        self.lane_places: dict[str, Place] = {}

    def read(self, document: Table) -> RuleFile:
        values, top = self.values, Place(self.values.name, 1)
        values.check_keys(document, "version baseline when rule", top, "a rules file")
        if document.get("version") != VERSION:
            values.problem(
                values.key_place(top, "version"),
                f"version is {document.get('version')!r}",
                f"write  version = {VERSION}",
            )
        lanes = {
            name: self._lane(name, values.table(document, "when", top)) for name in values.table(document, "when", top)
        }
        rules = tuple(self._rule(table, place, lanes) for table, place in values.tables(document, "rule", "rule"))
        used = {name for rule in rules for name in rule.when}
        for name in lanes:
            if name not in used:
                at = self.lane_places[name]
                values.problem(
                    at, f"no rule is for [when.{name}]", f'add  when = "{name}"  to a rule, or take the lane out'
                )
        if not rules:
            values.problem(top, "the file has no [[rule]]", "add one, or let `logscope rules learn LOG` write some")
        baseline = values.text(document, "baseline", top) or None
        return RuleFile(values.name, rules, lanes, baseline, values.key_place(top, "baseline"))

    def _lane(self, name: str, lanes: Table) -> Lane:
        values = self.values
        place = self.lane_places[name] = values.next_table(f"when.{name}")
        table = values.table(lanes, name, place)
        values.check_keys(table, "labels args releases", place, f"[when.{name}]")
        if not table:
            values.problem(place, f"[when.{name}] asks for nothing", 'add  labels = { gpu = "H200" }, args or releases')
        releases = values.text(table, "releases", place)
        found = _RANGE.fullmatch(releases)
        versions = [version for version in found.groups() if version] if found else []
        if "releases" in table and not (versions and all(_is_version(version) for version in versions)):
            at = values.key_place(place, "releases")
            values.problem(at, f"releases is {table['releases']!r}", 'write  releases = ">=0.5.9, <0.5.14"')
            found = None
        elif found and found["since"] and found["until"] and Version(found["since"]) >= Version(found["until"]):
            values.problem(values.key_place(place, "releases"), f"no release is {releases}", "mend the range")
        labels, args = (_texts(values.table(table, key, place)) for key in ("labels", "args"))
        for arg in args:
            problem = self.words.refuse_arg(arg)
            if problem is not None:
                values.problem(values.key_place(place, "args"), problem.what, problem.do)
        return Lane(name, labels, args, found["since"] if found else None, found["until"] if found else None)

    def _rule(self, table: Table, place: Place, lanes: Mapping[str, Lane]) -> Rule:
        values = self.values
        values.check_keys(table, _RULE_KEYS, place, "a rule")
        rule_id = values.text(table, "id", place, needed=True)
        if rule_id and rule_id in self.ids:
            values.problem(
                values.key_place(place, "id"),
                f"rule '{rule_id}' exists already ({self.ids[rule_id]})",
                "take another id",
            )
        self.ids.setdefault(rule_id, place)
        when = values.texts(table, "when", place)
        for name in when:
            if name not in lanes:
                values.problem(
                    values.key_place(place, "when"),
                    f"there is no [when.{name}]",
                    suggestion(name, list(lanes) or ["none"]),
                )
        select = self.expecting.select(table, place)
        expect = self.expecting.expect(table, select, place)
        return Rule(
            id=rule_id,
            why=values.text(table, "why", place, needed=True),
            level=cast("Level", values.choice(table, "level", get_args(Level), place, "error")),
            place=values.key_place(place, "id"),
            select=select,
            expect=expect,
            when=when,
            optional=values.flag(table, "optional", place),
            tests=self._tests(table, place),
            expect_at=values.key_place(place, "expect"),
        )

    def _tests(self, table: Table, place: Place) -> tuple[RuleTest, ...]:
        values = self.values
        tests = []
        for entry, at in values.tables(table, "test", "rule.test", place):
            values.check_keys(entry, "given baseline labels expect", at, "a test")
            for key in ("given", "expect"):
                if not entry.get(key):
                    values.problem(values.key_place(at, key), f"the test has no '{key}'", _TEST_ADVICE[key])
            status = values.choice(entry, "expect", get_args(Status), at, "pass")
            given, baseline = (_log(values.texts(entry, key, at)) for key in ("given", "baseline"))
            labels = _texts(values.table(entry, "labels", at))
            tests.append(RuleTest(given, baseline if "baseline" in entry else None, labels, cast("Status", status), at))
        if tests and not any(test.expect == "fail" for test in tests):
            what = "no test of this rule fails: it may be one that cannot"
            values.problem(place, what, 'add a [[rule.test]] with  expect = "fail"')
        return tuple(tests)


_TEST_ADVICE = {
    "given": 'add  given = ["..."], the lines of a log',
    "expect": 'add  expect = "fail", or pass, inconclusive, skipped',
}


def _log(lines: tuple[str, ...]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _texts(table: Table) -> dict[str, str]:
    return {key: str(value) for key, value in table.items()}


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True
