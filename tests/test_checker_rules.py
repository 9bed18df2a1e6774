"""Rules files: what is read, what is refused with file:line and advice, and the tests that rules carry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import FIXTURES
from logscope.checker import load_rules, read_rules, run_tests
from logscope.checker.amounts import read_amount, read_bound
from logscope.errors import RulesError
from logscope.packs import Packs, load_packs
from logscope.reading import Reading, read_launches
from logscope.units import GIB, MIB

STORY = Path(__file__).parent / "rules" / "story.toml"
DOC = Path(__file__).parent.parent / "docs" / "check.md"
BLOCKS = re.findall(r"```toml\n(.*?)```", DOC.read_text(encoding="utf-8"), flags=re.DOTALL)
VALUES = 'select = { event = "kv_cache.allocated", field = "tokens" }'
GIBS = 'select = { event = "init_torch_distributed.end", field = "mem_usage" }'
TESTED = '[[rule.test]]\ngiven = ["x"]\nexpect = "fail"\n'


def rule(body: str, rule_id: str = "r") -> str:
    """Return a rules file with one rule; the rule's header is line 3, what ``body`` says begins on line 6."""
    return f'version = 1\n\n[[rule]]\nid = "{rule_id}"\nwhy = "because"\n{body}\n'


def problems_of(text: str, packs: Packs) -> list[str]:
    with pytest.raises(RulesError) as caught:
        read_rules(text, "rules.toml", packs)
    for problem in caught.value.problems:
        assert re.match(r"rules\.toml:\d+: .+\n  do: .+", problem), problem
    return caught.value.problems


# -- amounts ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value", "dimension"),
    [
        ("150k tokens", 150_000, "tokens"),
        ("150 k tokens", 150_000, "tokens"),
        ("1.5M tokens", 1_500_000, "tokens"),
        ("150k", 150_000, ""),
        ("2M", 2_000_000, ""),
        ("159,269 tokens", 159_269, "tokens"),
        ("159_269", 159_269, ""),
        ("9.5 GiB", 9.5 * GIB, "bytes"),
        ("9.5GB", 9.5 * GIB, "bytes"),
        ("10 MB", 10 * MIB, "bytes"),
        ("10 kB", 10 * 1024, "bytes"),
        ("12 min", 720, "s"),
        ("12m", 720, "s"),
        ("1.5 h", 5400, "s"),
        ("250 ms", 0.25, "s"),
        ("1 %", 0.01, "percent"),
        ("-1", -1, ""),
    ],
)
def test_amounts_have_units(text: str, value: float, dimension: str) -> None:
    """ "m" are minutes and "M" a million; "GB" is GiB, as SGLang prints it."""
    found = read_amount(text)
    assert found is not None
    assert pytest.approx(value) == found.value
    assert dimension == found.dimension


@pytest.mark.parametrize("text", ["", "much", "1,5 GiB", "12 parsecs", "1e6", "k", "5 k GiB", "1.2.3"])
def test_other_texts_are_no_amounts(text: str) -> None:
    assert read_amount(text) is None


@pytest.mark.parametrize(
    "text", ["9.5 GiB", "=> 9 GiB", ">= ", ">= 1 %", "<= baseline +", "<= baseline + -1 GiB", "<= base + 1 GiB"]
)
def test_other_texts_are_no_bounds(text: str) -> None:
    assert read_bound(text) is None


# -- what is refused -------------------------------------------------------------------------------------------------------------

REFUSED = {
    "unknown event": (f"{VALUES.replace('allocated', 'alocated')}\nexpect = {{ min = '>= 1 tokens' }}", 6, "no event"),
    "unknown field": (f"{VALUES.replace('tokens', 'tokenz')}\nexpect = {{ min = '>= 1 tokens' }}", 6, "no field"),
    "unknown phase": ("select = { phase = 'kv', field = 'used' }\nexpect = { min = '>= 1 GiB' }", 6, "no phase"),
    "unknown phase field": ("select = { phase = 'kv_cache', field = 'size' }\nexpect = { min = '>= 1 GiB' }", 6, "no 'size'"),
    "phase without field": ("select = { phase = 'kv_cache' }\nexpect = { min = '>= 1 GiB' }", 6, "no ''"),
    "unknown item": ("select = { ledger = 'cushions' }\nexpect = { min = '>= 1 GiB' }", 6, "no item"),
    "unknown launch value": ("select = { launch = 'token' }\nexpect = { min = '>= 1 tokens' }", 6, "has no 'token'"),
    "two sources": ("select = { launch = 'tokens', arg = 'x' }\nexpect = { min = '>= 1 tokens' }", 6, "names 2 sources"),
    "no source": ("select = { field = 'tokens' }\nexpect = { min = '>= 1 tokens' }", 6, "names 0 sources"),
    "unknown worker": ("select = { phase = 'kv_cache', field = 'used', worker = 'drft' }\nexpect = { min = '>= 1 GiB' }", 6, "drft"),
    "option of another source": ("select = { launch = 'tokens', rank = 'TP0' }\nexpect = { min = '>= 1 tokens' }", 6, "go with"),
    "event without field": ("select = { event = 'kv_cache.allocated' }\nexpect = { min = '>= 1 tokens' }", 7, "needs a field"),
    "unknown finding": ("expect = { absent = ['oon_*'] }", 6, "no event, finding or cause"),
    "finding where an event is due": ("expect = { reach = 'not_enough_memory' }", 6, "no event"),
    "unknown word of unchanged": ("expect = { unchanged = ['arguments'] }", 6, "nothing called 'arguments'"),
    "unknown identity": ("expect = { identity = 'kv' }", 6, "kv_budget"),
    "negative tokens": (f"{VALUES}\nexpect = {{ min = '>= -5 tokens' }}", 7, "can never hold, or always does"),
    "below 0 tokens": (f"{VALUES}\nexpect = {{ max = '< 0 tokens' }}", 7, "can never hold"),
    "below 0 s": ("select = { phase = 'load_weights', field = 'duration' }\nexpect = { max = '< 0 s' }", 7, "can never"),
    "a negative spread": (f"{GIBS}\nexpect = {{ spread = '<= -1 GiB' }}", 7, "can never"),
    "a spread of anything": (f"{GIBS}\nexpect = {{ spread = '>= 0 GiB' }}", 7, "always does"),
    "a negative count": (f"{GIBS}\nexpect = {{ count = '== -1' }}", 7, "can never"),
    "more than all": ("expect = { coverage = '>= 120 %' }", 6, "can never"),
    "as much as all": ("expect = { coverage = '> 100 %' }", 6, "can never"),
    "no more than all": ("expect = { coverage = '<= 100 %' }", 6, "always does"),
    "a whole baseline less": (f"{VALUES}\nexpect = {{ min = '>= baseline - 100 %' }}", 7, "always does"),
    "more than a baseline less": (f"{GIBS}\nexpect = {{ max = '<= baseline - 150 %' }}", 7, "can never"),
    "least above the greatest": (f"{GIBS}\nexpect = {{ min = '>= 2 GiB', max = '<= 1 GiB' }}", 7, "and max = '<= 1 GiB' can never"),
    "each above the greatest": (f"{GIBS}\nexpect = {{ each = '> 1 GiB', max = '<= 1 GiB' }}", 7, "each = '> 1 GiB' and max"),
    "each below the least": (f"{GIBS}\nexpect = {{ each = '<= 1 GiB', min = '>= 2 GiB' }}", 7, "min = '>= 2 GiB' and each"),
    "any above each": (f"{GIBS}\nexpect = {{ each = '<= 1 GiB', any = '>= 2 GiB' }}", 7, "any = '>= 2 GiB' and each"),
    "any below the least": (f"{GIBS}\nexpect = {{ min = '>= 2 GiB', any = '< 2 GiB' }}", 7, "min = '>= 2 GiB' and any"),
    "two equal values": (f"{VALUES}\nexpect = {{ min = '== 8 tokens', max = '== 7 tokens' }}", 7, "can never hold together"),
    "none of them, and each": (f"{VALUES}\nexpect = {{ count = '== 0', each = '>= 1 tokens' }}", 7, "count = '== 0' and each"),
    "misspelt argument": ("select = { arg = 'mem_fraction_sttic' }\nexpect = { equals = 0.88 }", 6, "no argument 'mem_fraction_sttic'"),
    "argument that is none": ("select = { arg = 'gpu' }\nexpect = { equals = 1 }", 6, "write it as the log's server_args print it"),
    "argument as typed": ("select = { arg = '--tp-size' }\nexpect = { equals = 1 }", 6, "did you mean 'tp_size'?"),
    "argument in short": ("select = { arg = 'tp' }\nexpect = { equals = 1 }", 6, "did you mean 'tp_size'?"),
    "rank that is none": (f"{VALUES[:-2]}, rank = 'worst' }}\nexpect = {{ min = '>= 1 tokens' }}", 6, "no tag of a rank"),
    "rounded numbers differ always": (f"{GIBS}\nexpect = {{ each = '!= 0.64 GiB' }}", 7, "always holds"),
    "GiB against tokens": (f"{VALUES}\nexpect = {{ min = '>= 9.5 GiB' }}", 7, "compares bytes with tokens"),
    "tokens against GiB": (f"{GIBS}\nexpect = {{ max = '<= baseline + 5 tokens' }}", 7, "compares tokens with bytes"),
    "number without unit": (f"{VALUES}\nexpect = {{ min = '>= 150k' }}", 7, "compares a plain number with tokens"),
    "bound of a text": ("select = { launch = 'outcome' }\nexpect = { each = '== 1' }", 7, "with text"),
    "no bound": (f"{VALUES}\nexpect = {{ min = 'many' }}", 7, "is no bound"),
    "percent of nothing": (f"{VALUES}\nexpect = {{ min = '>= 99 %' }}", 7, "is no bound"),
    "bound without select": ("expect = { min = '>= 1 tokens' }", 6, "needs 'select'"),
    "select without bound": (f"{VALUES}\nexpect = {{ reach = 'ready' }}", 7, "says nothing to reach"),
    "two expectations": ("expect = { reach = 'ready', absent = ['failure.*'] }", 6, "asks for 2 things: reach, absent"),
    "bound and another": (f"{VALUES}\nexpect = {{ min = '>= 1 tokens', equals = 1 }}", 7, "asks for 2 things"),
    "no expectation": (VALUES, 3, "asks for nothing"),
    "empty list": ("expect = { absent = [] }", 6, "names nothing"),
    "empty sequence": ("expect = { sequence = [] }", 6, "names nothing"),
    "until of nothing": ("expect = { present = ['failure.*'], until = 'ready' }", 6, "goes with 'absent'"),
    "ranks of nothing": ("expect = { present = ['failure.*'], ranks = 'all' }", 6, "goes with 'reach'"),
    "not every rank says it": ("expect = { reach = 'ready', ranks = 'all' }", 6, "not said by every rank"),
    "sequence of the main process": ("expect = { sequence = ['load_weights.end', 'ready.fired_up'] }", 6, "not said by every"),
    "star in a sequence": ("expect = { sequence = ['load_weights.*', 'memory_pool.end'] }", 6, "load_weights.*"),
    "no time": ("expect = { reach = 'ready', within = '12 GiB' }", 6, "within is"),
    "no time at all": ("expect = { reach = 'ready', within = '0 min' }", 6, "within is"),
    "outcome that is none": ("select = { launch = 'outcome' }\nexpect = { equals = 'redy' }", 7, "never 'redy'"),
    "memory that is equal": (f"{GIBS}\nexpect = {{ equals = 0.64 }}", 7, "write a bound"),
    "unknown key of a rule": ("expect = { reach = 'ready' }\nseverity = 'error'", 7, "unknown key 'severity'"),
    "unknown key of expect": ("expect = { reach = 'ready', before = '12 min' }", 6, "unknown key 'before'"),
    "unknown level": ("expect = { reach = 'ready' }\nlevel = 'fatal'", 7, "fatal"),
    "unknown lane": ("expect = { reach = 'ready' }\nwhen = 'h200'", 7, "no [when.h200]"),
    "flag that is a text": ("expect = { reach = 'ready' }\noptional = 'yes'", 7, "not true or false"),
    "count of one value": ("select = { launch = 'ranks' }\nexpect = { count = '== 8' }", 7, "ranks is one value"),
    "count of one argument": ("select = { arg = 'tp_size' }\nexpect = { count = '<= 1' }", 7, "tp_size is one value"),
    "nothing at all": ("expect = { absent = ['*'] }", 6, "'*' is every event: some are always there"),
    "anything at all": ("expect = { present = ['*'] }", 6, "'*' is every event: one is always there"),
    "absent until it is there": ("expect = { absent = ['ready'], until = 'ready' }", 6, "whenever 'ready' is reached"),
    "absent with a star until it is there": (
        "expect = { absent = ['load_weights.*'], until = 'load_weights.end' }", 6, "whenever 'load_weights.end' is reached"
    ),
    "no test that fails": (f"expect = {{ reach = 'ready' }}\n{TESTED.replace('fail', 'pass')}", 3, "no test of this rule fails"),
    "test without lines": ("expect = { reach = 'ready' }\n[[rule.test]]\nexpect = 'fail'", 7, "no 'given'"),
    "test without expectation": (f"expect = {{ reach = 'ready' }}\n{TESTED}[[rule.test]]\ngiven = ['x']", 10, "no 'expect'"),
    "unknown status": (f"expect = {{ reach = 'ready' }}\n{TESTED}[[rule.test]]\ngiven = ['x']\nexpect = 'good'", 12, "good"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_rule_that_cannot_be_meant_is_refused(name: str, packs: Packs) -> None:
    body, line, what = REFUSED[name]
    found = problems_of(rule(body), packs)
    assert [problem for problem in found if problem.startswith(f"rules.toml:{line}: ") and what in problem], found


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("version = 1\n", "the file has no [[rule]]"),
        (rule("expect = { reach = 'ready' }").replace("version = 1", "version = 2"), "version is 2"),
        (rule("expect = { reach = 'ready' }").replace("version = 1", ""), "version is None"),
        (rule("expect = { reach = 'ready' }").replace("version = 1", "version = 1\nlevel = 'x'"), "unknown key 'level'"),
        (rule("expect = { reach = 'ready' }").replace('why = "because"', ""), "'why' is missing"),
        (rule("expect = { reach = 'ready' }").replace('id = "r"', ""), "'id' is missing"),
        (rule("expect = { reach = 'ready' }") + rule("expect = { reach = 'ready' }")[11:], "rule 'r' exists already"),
        (rule("expect = { reach = 'ready' }") + "[when.old]\nreleases = 'new'\n", "releases is 'new'"),
        (rule("expect = { reach = 'ready' }") + "[when.old]\nreleases = '>=0.x'\n", "releases is '>=0.x'"),
        (rule("expect = { reach = 'ready' }") + "[when.old]\n", "[when.old] asks for nothing"),
        (rule("expect = { reach = 'ready' }") + "[when.old]\nargs = { tp_sise = 8 }\n", "did you mean 'tp_size'?"),
        (rule("expect = { reach = 'ready' }") + "[when.old]\nargs = { tp_size = 8 }\n", "rules.toml:7: no rule is for [when.old]"),
        (rule("expect = { reach = 'ready' }") + "[when.old]\nreleases = '>=0.5.9, <0.5.9'\n", "no release is >=0.5.9, <0.5.9"),
        (rule("expect = { reach = 'ready' }") + "[when.old]\ngpu = 'H200'\n", "unknown key 'gpu'"),
        ("version = 1\n[[rule]\n", "not TOML"),
    ],
)  # fmt: skip
def test_file_that_cannot_be_meant_is_refused(text: str, what: str, packs: Packs) -> None:
    assert what in "\n".join(problems_of(text, packs))


def test_syntax_error_names_its_line(packs: Packs) -> None:
    assert problems_of("version = 1\n\nid = x\n", packs)[0].startswith("rules.toml:3: not TOML")


def test_all_problems_are_listed_in_the_order_of_their_lines(packs: Packs) -> None:
    text = rule("expect = { reach = 'redy', within = '5 GiB' }\nlevel = 'bad'") + rule("expect = {}", "other")[11:]
    found = problems_of(text, packs)
    assert 4 == len(found)
    assert [int(problem.split(":")[1]) for problem in found] == [6, 6, 7, 13]


def test_argument_of_a_pattern_file_of_a_user_is_known(tmp_path: Path, packs: Packs) -> None:
    text = rule("select = { arg = 'site_mode' }\nexpect = { equals = 'x' }")
    assert "SGLang has no argument 'site_mode'" in problems_of(text, packs)[0]
    (tmp_path / "own.toml").write_text('[phase]\nid = "server_args"\narguments = "site_mode other"\n')
    assert "r" == read_rules(text, "rules.toml", load_packs([tmp_path])).rules[0].id


@pytest.mark.parametrize("case", sorted(path.parent.name for path in FIXTURES.glob("*/launch.log")))
def test_arguments_that_launches_print_are_known(case: str, packs: Packs) -> None:
    for launch in read_launches([str(FIXTURES / case / "launch.log")], Reading(packs)):
        assert set() == {name for name in launch.args.values if not name.startswith("_")} - packs.arguments


@pytest.mark.parametrize(
    ("body", "do"),
    [
        ("select = { event = 'kv_cache.allocated', field = 'size' }\nexpect = { min = '>= 1 GiB' }", "kv_size"),
        (f"{VALUES}\nexpect = {{ min = '>= 1274152' }}", 'write  min = ">= 1274152 tokens"'),
        (f"{VALUES}\nexpect = {{ min = '>= 9.5 GiB' }}", "write it in tokens"),
        (f"{GIBS}\nexpect = {{ max = '<= 2' }}", 'write  max = "<= 2 GiB"'),
        ("select = { launch = 'ranks' }\nexpect = { count = '== 8' }", 'write  each = "== 8"'),
    ],
)
def test_refusals_tell_what_to_write(body: str, do: str, packs: Packs) -> None:
    assert do in "\n".join(problems_of(rule(body), packs))


@pytest.mark.parametrize("name", ["graphs*", "K*", "*", "graphs: *", "draft graphs*"])
def test_names_of_the_ledger_may_have_stars(name: str, packs: Packs) -> None:
    found = read_rules(rule(f"select = {{ ledger = '{name}' }}\nexpect = {{ max = '<= 20 GiB' }}"), "rules.toml", packs)
    assert name == found.rules[0].select.name  # type: ignore[union-attr]


def test_near_words_are_suggested(packs: Packs) -> None:
    found = problems_of(rule("expect = { reach = 'load_weight.end' }"), packs)
    assert "did you mean 'load_weights.end'?" in found[0]


@pytest.mark.parametrize(
    "body",
    [
        "select = { arg = 'stream_interval' }\nexpect = { each = '== -1' }",
        "select = { phase = 'memory_pool', field = 'used' }\nexpect = { min = '>= -0.5 GiB' }",
        "select = { event = 'kv_cache.allocated' }\nexpect = { count = '== 8' }",
        "select = { ledger = 'graphs: decode', worker = 'target' }\nexpect = { sum = '<= 12 GB' }",
        f"{GIBS}\nexpect = {{ any = '<= baseline + 5 %', spread = '<= 0.1 GiB' }}",
        "select = { arg = 'enable_dp_attention' }\nexpect = { equals = true }",
        "select = { launch = 'cause' }\nexpect = { equals = '' }",
        f"{GIBS}\nexpect = {{ min = '>= 1 GiB', max = '<= 1 GiB', spread = '<= 5 GiB', any = '== 1 GiB' }}",
        f"{GIBS}\nexpect = {{ min = '<= 1 GiB', max = '>= 2 GiB', each = '<= baseline + 150 %', any = '>= baseline - 99 %' }}",
        f"{VALUES}\nexpect = {{ count = '<= 8', max = '<= 200k tokens', sum = '<= 5 tokens' }}",
        "expect = { unknown_memory_lines = '<= 3' }",
        "expect = { coverage = '>=98%', unknown_memory_lines = '== 0' }",
        "expect = { absent = ['unknown_wording', 'drift', 'oom_*', 'failure.*'], until = 'ready' }",
        "expect = { reach = 'load_weights.end', ranks = 'all', within = '1.5 h' }",
    ],
)
def test_rule_that_can_be_meant_is_read(body: str, packs: Packs) -> None:
    assert "r" == read_rules(rule(body), "rules.toml", packs).rules[0].id


# -- the story, the documentation, and tests of rules ----------------------------------------------------------------------------


def test_every_rule_of_the_story_is_tested(packs: Packs) -> None:
    story = load_rules(STORY, packs)
    assert all(rule.tests for rule in story.rules)
    outcomes = list(run_tests(story, packs))
    assert len(outcomes) >= 2 * len(story.rules) - 1
    assert [] == [(each.test.place, each.status, each.found) for each in outcomes if not each.is_good]


@pytest.mark.parametrize("index", range(len(BLOCKS)))
def test_examples_of_the_documentation_are_read_and_their_tests_are_good(index: int, packs: Packs) -> None:
    text = BLOCKS[index] if BLOCKS[index].startswith("version") else f"version = 1\n{BLOCKS[index]}"
    file = read_rules(text, str(DOC), packs)
    assert file.rules
    assert [] == [(each.test.place, each.status, each.found) for each in run_tests(file, packs) if not each.is_good]


def test_documentation_names_every_key_and_has_examples() -> None:
    text = DOC.read_text(encoding="utf-8")
    keys = (  # noqa: SIM905 # one a line would be a page
        "version baseline when labels args releases id why level optional select event phase ledger arg launch field worker rank role "
        "expect each any min max spread sum count equals reach ranks within present absent until sequence identity coverage "
        "unknown_memory_lines unchanged given"
    ).split()
    assert [] == [key for key in keys if f"`{key}`" not in text]
    assert 4 == len(BLOCKS)


def test_a_test_that_comes_out_otherwise_is_told(packs: Packs) -> None:
    line = "[2026-01-05 10:09:00] The server is fired up and ready to roll!"
    text = rule(f"expect = {{ reach = 'ready' }}\n[[rule.test]]\ngiven = ['{line}']\nexpect = 'fail'")
    found = list(run_tests(read_rules(text, "rules.toml", packs), packs))
    assert [(False, "pass", "reached")] == [(each.is_good, each.status, each.found) for each in found]


def test_lines_of_a_test_without_a_launch_come_to_nothing(packs: Packs) -> None:
    text = rule(f"expect = {{ reach = 'ready' }}\n{TESTED}")
    found = list(run_tests(read_rules(text, "rules.toml", packs), packs))
    assert [(False, None)] == [(each.is_good, each.status) for each in found]
