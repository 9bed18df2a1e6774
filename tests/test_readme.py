"""What the documents show is true: commands run, their output is the one shown, examples parse, tables of fields are complete."""

from __future__ import annotations

import ast
import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import logscope
from logscope import causes, explainer
from logscope.causes import LAST, ORDER
from logscope.differ import attribution
from logscope.frames import SCHEMA, Frames
from logscope.packcheck import check_packs
from logscope.packs import builtin_dir
from logscope.packs.load import read_files

ROOT = Path(__file__).parent.parent
PACKAGE_HOME = Path(logscope.__file__).parent.parent
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
SET_UP = re.compile(
    r"python3 -m venv (?P<venv>\.venv[\w-]*) && (?P=venv)/bin/pip install -q (?:\S+ )+&& (?P<then>(?P=venv)/bin/.+)"
)
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+) *(?P<mark>[^\n]*)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
ELLIPSIS = "..."
NOT_COPIED = (".git", ".venv*", ".*_cache", "__pycache__", "build", "dist", "benchmarks")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a document, without its indentation. ``mark`` is what follows the language: "one-command", or nothing."""

    document: str
    line: int
    language: str
    mark: str
    text: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def read_blocks_of(document: str) -> list[Block]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return [
        Block(
            document,
            text.count("\n", 0, match.start()) + 1,
            match["language"],
            match["mark"],
            re.sub(rf"^{match['indent']}", "", match["body"], flags=re.MULTILINE),
        )
        for match in FENCE.finditer(text)
    ]


BLOCKS = [block for document in DOCUMENTS for block in read_blocks_of(document)]
COMMAND_BLOCKS = [block for block in BLOCKS if block.language in ("console", "sh")]


def split_commands(block: Block) -> list[tuple[str, list[str]]]:
    """Return (command, lines of output shown); a block without ``$`` holds commands only. A "one-command" block may print a ``$``, too."""
    lines = block.text.splitlines()
    if not any(line.startswith("$ ") for line in lines):
        return [(line, []) for line in lines if line.strip() and not line.startswith("#")]
    commands: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("$ ") and not (commands and block.mark == "one-command"):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return commands


def first_gap(shown: list[str], printed: str) -> str | None:
    """Return the first line shown that does not stand where it should in what was printed; ``...`` skips any number of lines."""
    real = [line.rstrip() for line in printed.splitlines()]
    at, may_skip = 0, False
    for line in shown:
        if line == ELLIPSIS:
            may_skip = True
            continue
        wanted = line.rstrip()
        stop = len(real) if may_skip else at + 1
        found = next((index for index in range(at, stop) if index < len(real) and real[index] == wanted), None)
        if found is None:
            return line
        at, may_skip = found + 1, False
    return None if may_skip or not any(real[at:]) else f"(the end; but the program goes on with {real[at]!r})"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the checkout with the logs that README.md copies, where the names of both set-ups are the program under test."""
    copy = tmp_path / "checkout"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
    start = f"PYTHONPATH={shlex.quote(str(PACKAGE_HOME))} exec {shlex.quote(sys.executable)} -P -m"
    for place, command in (
        (".bin/logscope", "logscope"),
        (".venv/bin/logscope", "logscope"),
        (".venv-test/bin/logscope", "logscope"),
        (
            ".venv-test/bin/pytest",
            "pytest --collect-only -p no:cacheprovider",
        ),  # that its words are right; not all tests again
    ):
        path = copy / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\n{start} {command} "$@"\n')
        path.chmod(0o755)
    for block in COMMAND_BLOCKS:
        for command, _ in split_commands(block):
            if command.startswith("cp tests/fixtures/"):
                _, source, target = shlex.split(command)
                shutil.copy(ROOT / source, copy / target)
    return copy


def run_in(checkout: Path, script: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name not in ("CI", "GITHUB_ACTIONS")}  # a user's
    environment = own | {
        "PATH": f"{checkout / '.bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        ["sh", "-c", script], cwd=checkout, env=environment, capture_output=True, encoding="utf-8", check=False
    )


# -- commands --------------------------------------------------------------------------------------------------------------------


def test_readme_has_command_blocks() -> None:
    assert len([block for block in COMMAND_BLOCKS if block.document == "README.md"]) >= 8


def test_readme_has_two_set_up_lines() -> None:
    """One line installs and shows the demo, one runs the tests; .ci/run ends with the same words."""
    commands = [
        command for block in COMMAND_BLOCKS if block.document == "README.md" for command, _ in split_commands(block)
    ]
    then = [match["then"] for command in commands if (match := SET_UP.fullmatch(command))]
    assert [".venv/bin/logscope demo", ".venv-test/bin/pytest"] == then
    assert len([command for command in commands if "venv " in command]) == len(then)
    assert '\nstep "tests" "$venv/bin/pytest"\n' in (ROOT / ".ci/run").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", COMMAND_BLOCKS, ids=str)
def test_commands_print_what_is_shown(block: Block, checkout: Path) -> None:
    """Each command of a block exits 0 and prints, stdout after stderr, the lines shown."""
    commands = split_commands(block)
    assert commands
    for command, shown in commands:
        set_up = SET_UP.fullmatch(command)
        result = run_in(checkout, set_up["then"] if set_up else command)
        printed = result.stderr + result.stdout
        assert 0 == result.returncode, f"{block}: {command}\n{printed}"
        if shown:
            gap = first_gap(shown, printed)
            assert gap is None, f"{block}: {command}\ndoes not print, at its place: {gap}\n{printed}"


def test_lines_shown_are_compared_in_order() -> None:
    printed = "a\nb  \nc\nd\n"
    assert first_gap(["a", "b", "c", "d"], printed) is None
    assert first_gap(["...", "b", "...", "d"], printed) is None
    assert first_gap(["a", "..."], printed) is None
    assert "c" == first_gap(["a", "c", "..."], printed)
    assert "b" == first_gap(["...", "c", "...", "b"], printed)
    assert first_gap(["a", "b", "c"], printed) is not None


# -- Python ----------------------------------------------------------------------------------------------------------------------

PYTHON_BLOCKS = [block for block in BLOCKS if block.language in ("pycon", "python", "py")]


def test_documents_show_python() -> None:
    assert "README.md" in {block.document for block in PYTHON_BLOCKS}


@pytest.mark.parametrize("block", PYTHON_BLOCKS, ids=str)
def test_python_examples_give_what_is_shown(block: Block, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout)
    if ">>>" not in block.text:
        compile(block.text, str(block), "exec")
        return
    example = doctest.DocTestParser().get_doctest(block.text, {}, str(block), block.document, block.line)
    told: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(example, out=told.append)
    assert 0 == result.failed, "".join(told)
    assert result.attempted > 0


# -- examples in TOML ------------------------------------------------------------------------------------------------------------

TOML_BLOCKS = [block for block in BLOCKS if block.language == "toml"]


def test_documents_show_pattern_files() -> None:
    assert [block for block in TOML_BLOCKS if block.document == "docs/patterns.md" and "[phase]" in block.text]


@pytest.mark.parametrize("block", TOML_BLOCKS, ids=str)
def test_toml_examples_parse_and_pattern_files_pass_the_check(block: Block, tmp_path: Path) -> None:
    """An example that is a whole pattern file passes on its own; it may show an event that the built-in files have."""
    table = tomllib.loads(block.text)
    if "phase" not in table or "event" not in table:
        return
    path = tmp_path / "example.toml"
    path.write_text(block.text, encoding="utf-8")
    envelope = builtin_dir() / "envelope.toml"
    checked = check_packs(read_files([(path, path.name), (envelope, envelope.name)]))
    assert checked.samples > 0


# -- links -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_between_documents_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    missing = [
        target
        for target in targets
        if target and "://" not in target and not ((ROOT / document).parent / target).exists()
    ]
    assert [] == missing


# -- docs/frames.md --------------------------------------------------------------------------------------------------------------

FRAMES_HEAD = """# Frames

Generated from `logscope.frames.SCHEMA` by `tests/test_readme.py`; run `python tests/test_readme.py` to write it anew.

`logscope.read(...)` gives launches; `launches.frames` has these frames over all of them, `launches[0].frames` over one. They are pandas
frames with nullable types: what the log does not print is missing, never 0. Memory is in bytes, time in seconds. A `resolution` is the step
of the last printed digit: the true value lies within half of it. `timeline -f csv` and `-f parquet` write the frame `timeline`,
`-f json` all but `events` and `values`. Names of frames and columns are kept; columns may be added.
"""


def frames_document() -> str:
    """Return docs/frames.md as the schema gives it."""
    parts = [FRAMES_HEAD]
    for name, columns in SCHEMA.items():
        rows = [f"| `{column}` | {dtype} | {meaning} |" for column, (dtype, meaning) in columns.items()]
        summary = vars(Frames)[name].__doc__
        parts.append(
            "\n".join([f"## `{name}`\n\n{summary}\n", "| column | type | meaning |", "|---|---|---|", *rows, ""])
        )
    return "\n".join(parts)


def test_frames_document_is_the_schema() -> None:
    assert frames_document() == (ROOT / "docs/frames.md").read_text(encoding="utf-8")


# -- docs/json.md ----------------------------------------------------------------------------------------------------------------


def documented_fields() -> Mapping[str, list[str]]:
    """Return heading -> the names in the first column of the table below it."""
    text = (ROOT / "docs/json.md").read_text(encoding="utf-8")
    fields: dict[str, list[str]] = {}
    for part in re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        names = re.findall(r"^\| `(\w+)` \|", body, flags=re.MULTILINE)
        if names:
            fields[heading.replace("`", "")] = names
    return fields


@pytest.fixture
def odd_log(checkout: Path) -> str:
    """A launch that is stopped after it was ready, with a known line in an unknown wording."""
    lines = (checkout / "tests/fixtures/0.5.9-ok/launch.log").read_text(encoding="utf-8")
    (checkout / "odd.log").write_text(
        f"[2026-01-05 10:00:00] Memory pool end. avail mem=many\n{lines}", encoding="utf-8"
    )
    return "odd.log"


def test_json_document_lists_the_fields_of_timeline(checkout: Path, odd_log: str) -> None:
    data = json.loads(run_in(checkout, f"logscope timeline {odd_log} -f json").stdout)
    launch = data["launches"][-1]
    shown = {
        "timeline": data,
        "launches[]": launch,
        "nodes[]": launch["nodes"][0],
        "evidence[]": launch["evidence"][0],
        "ended": launch["ended"],
        "releases": launch["releases"],
        "tally": launch["tally"],
        "drift[]": launch["drift"][0],
    }
    documented = documented_fields()
    for heading, value in shown.items():
        assert list(value) == documented[heading], heading
    for name in ("ranks", "phases", "timeline", "ledger", "args"):
        assert launch[name], name
        assert all(list(row) == list(SCHEMA[name]) for row in launch[name]), name
    assert 1 == data["schema"]


def test_json_document_lists_the_fields_of_explain(checkout: Path) -> None:
    data = json.loads(run_in(checkout, "logscope explain good.log --what-if page_size=64 -f json").stdout)
    launch = data["launches"][0]
    shown = {
        "explain": data,
        "explain: launches[]": launch,
        "explain: mem_fraction_static": launch["mem_fraction_static"],
        "explain: kv": launch["kv"],
        "explain: budget[]": launch["budget"][0],
        "explain: what_to_set[], what_if[]": launch["what_if"][0],
        "explain: ledger[]": launch["ledger"][0],
        "explain: findings[]": launch["findings"][0],
    }
    documented = documented_fields()
    for heading, value in shown.items():
        assert list(value) == documented[heading], heading
    assert list(launch["what_to_set"][0]) == list(launch["what_if"][0])
    assert 1 == data["schema"]


def test_json_document_lists_the_fields_of_diff(checkout: Path) -> None:
    data = json.loads(run_in(checkout, "logscope diff good.log bad.log -f json").stdout)
    shown = {
        "diff": data,
        "diff: causes[]": data["causes"][0],
        "diff: ruled_out[]": data["ruled_out"][0],
        "diff: args[]": data["args"][0],
        "diff: budget": data["budget"],
        "diff: terms[]": data["budget"]["terms"][0],
        "diff: times[]": data["times"][0],
        "diff: changes[]": data["changes"][0],
        "diff: first_divergence": data["first_divergence"],
    }
    documented = documented_fields()
    for heading, value in shown.items():
        assert list(value) == documented[heading], heading
    assert ["before", "after"] == list(data["outcome"])
    assert 1 == data["schema"]


def test_json_of_the_demo_is_that_of_its_commands(checkout: Path) -> None:
    data = json.loads(run_in(checkout, "logscope demo -f json").stdout)
    assert ["schema", "command", "diff", "explain"] == list(data)
    documented = documented_fields()
    assert (documented["diff"], documented["explain"]) == (list(data["diff"]), list(data["explain"]))


def test_json_document_lists_the_fields_of_events(checkout: Path, odd_log: str) -> None:
    events = [json.loads(line) for line in run_in(checkout, f"logscope events {odd_log} -f jsonl").stdout.splitlines()]
    drift = [event for event in events if event["event"] is None]
    assert drift
    documented = documented_fields()
    for event in events:
        always, only_drift = documented["events"], documented["events: drift"]
        assert always + (only_drift if event["event"] is None else []) == list(event)


# -- docs/explain.md -------------------------------------------------------------------------------------------------------------


def ids_of(heading: str) -> list[str]:
    """Return the first column of the table under a heading of docs/explain.md."""
    text = (ROOT / "docs/explain.md").read_text(encoding="utf-8")
    part = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", part, flags=re.MULTILINE)


def test_explain_document_lists_the_causes() -> None:
    assert sorted((*ORDER, LAST)) == sorted(ids_of("The cause"))


def test_explain_document_lists_the_findings() -> None:
    """Every id that stands in a call of ``Finding`` in the source, and no other."""
    made: set[str] = set()
    for package in (causes, explainer):
        for path in Path(package.__file__ or "").parent.glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                    made.update(str(each.value) for each in node.args[:1] if isinstance(each, ast.Constant))
    documented = ids_of("Findings")
    assert len(documented) == len(set(documented)) >= 25
    assert made == set(documented)


# -- docs/diff.md ----------------------------------------------------------------------------------------------------------------


def test_diff_document_lists_the_terms() -> None:
    """Every term that the change of the budget is split into, and no other."""
    made: set[str] = set()
    for node in ast.walk(ast.parse(Path(attribution.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Term", "_term"):
            made.update(str(each.value) for each in node.args[:1] if isinstance(each, ast.Constant))
    text = (ROOT / "docs/diff.md").read_text(encoding="utf-8")
    part = text.partition("\n## The budget\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+`) \|", part, flags=re.MULTILINE)
    assert sorted(made) == sorted(name for row in rows for name in re.findall(r"`(\w+)`", row))


if __name__ == "__main__":
    (ROOT / "docs/frames.md").write_text(frames_document(), encoding="utf-8")
