"""Check the fixtures themselves, without the code they are fixtures for."""

import json
import re
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent / "fixtures"
CASES = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())
MEMORY_CASES = [case for case in CASES if (FIXTURES / case / "expected/memory_lines.jsonl").exists()]

LAUNCH_KEYS = [
    "outcome",
    "outcome_line",
    "ended",
    "ranks",
    "workers",
    "server_args",
    "timeline",
    "phases",
]
PRIVATE = {
    "e-mail address": re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}"),
    "Hugging Face token": re.compile(r"\bhf_[A-Za-z0-9]{8,}"),
    "secret key": re.compile(r"\bsk-[A-Za-z0-9_-]{6,}"),
    "home directory": re.compile(r"/home/[\w.-]+"),
    "root's directory": re.compile(r"/root\b"),
}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def log_lines(case: str) -> list[str]:
    r"""Return the physical lines as `grep -n` counts them: only \n ends a line."""
    return (FIXTURES / case / "launch.log").read_bytes().decode().split("\n")


def read_launch(case: str) -> dict[str, object]:
    launch: dict[str, object] = json.loads((FIXTURES / case / "expected/launch.json").read_text())
    return launch


def read_memory_lines(case: str) -> list[dict[str, object]]:
    text = (FIXTURES / case / "expected/memory_lines.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_no_case_was_lost() -> None:
    assert 30 == len(CASES)
    assert 14 == len(MEMORY_CASES)


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_its_files(case: str) -> None:
    for name in ("launch.log", "PROVENANCE.md", "expected/launch.json"):
        assert (FIXTURES / case / name).stat().st_size > 0, f"{case} has no {name}"


@pytest.mark.parametrize("case", CASES)
def test_no_case_holds_private_data(case: str) -> None:
    files = [path for path in sorted((FIXTURES / case).rglob("*")) if path.is_file()]
    assert files
    found = [
        f"{path.relative_to(FIXTURES)}: {what}: {match.group()}"
        for path in files
        for what, regex in PRIVATE.items()
        for match in regex.finditer(path.read_bytes().decode())
    ]
    assert [] == found


def test_private_data_would_be_found() -> None:
    samples = {
        "e-mail address": "mail jane.doe@mail.example.com",
        "Hugging Face token": "HF_TOKEN=hf_abcdefghij",
        "secret key": "api_key='sk-abc123def'",
        "home directory": "/home/jane/models",
        "root's directory": "/root/.cache",
    }
    assert set(PRIVATE) == set(samples)
    for what, text in samples.items():
        assert PRIVATE[what].search(text), what


@pytest.mark.parametrize("case", CASES)
def test_expected_launch_is_well_formed(case: str) -> None:
    launch = read_launch(case)
    assert LAUNCH_KEYS == list(launch)
    assert launch["outcome"] in {"ready", "failed", "running", "cut"}
    assert launch["ended"] in ({None, "stopped", "failed"} if launch["outcome"] == "ready" else {None})
    assert isinstance(launch["timeline"], dict)
    assert launch["ranks"] == list(launch["timeline"])


@pytest.mark.parametrize("case", CASES)
def test_expected_launch_names_lines_that_exist(case: str) -> None:
    launch, lines = read_launch(case), log_lines(case)
    line = launch["outcome_line"]
    if launch["outcome"] == "ready":
        assert isinstance(line, int)
        assert "The server is fired up and ready to roll!" in lines[line - 1]
    elif launch["outcome"] == "failed":
        assert isinstance(line, int)
        assert re.search(r"error", lines[line - 1], re.IGNORECASE)
    phases = launch["phases"]
    assert isinstance(phases, list)
    for phase in phases:
        for edge in ("begin", "end"):
            number = phase[f"{edge}_line"]
            assert number is None or f" {edge}" in lines[number - 1]


@pytest.mark.parametrize("case", MEMORY_CASES)
def test_expected_values_stand_in_their_lines(case: str) -> None:
    lines, expected = log_lines(case), read_memory_lines(case)
    assert expected
    numbers = [entry["line"] for entry in expected if isinstance(entry["line"], int)]
    assert sorted(set(numbers)) == numbers, "one entry a line, in order"
    for entry in expected:
        assert ["line", "rank", "worker", "event", "values"] == list(entry)
        line, values = entry["line"], entry["values"]
        assert isinstance(line, int)
        assert isinstance(values, dict)
        text = lines[line - 1]
        assert entry["rank"] is None or f" {entry['rank']}] " in text
        printed = {float(number) for number in NUMBER.findall(text)}
        for name, value in values.items():
            if name == "kind":  # a name of ours, not a printed one
                continue
            assert value in text if isinstance(value, str) else value in printed, (line, name)
