"""What users see of some logs, whole: `pytest --update-golden` rewrites the files, and the difference is read before it is committed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent / "fixtures"

# case -> the commands whose output is kept; the name of the file is that of the command and the format. "diff-CASE" is a diff of CASE and
# this one.
GOLDEN = {
    "baseline": (
        "timeline.text",
        "timeline.json",
        "timeline.csv",
        "timeline.markdown",
        "events.jsonl",
        "explain.text",
        "explain.json",
        "diff-baseline.text",
    ),
    "baseline_debug_nocar": ("diff-baseline.text",),
    "car": (
        "timeline.text",
        "timeline.markdown",
        "explain.text",
        "explain.json",
        "explain.markdown",
        "diff-baseline.text",
        "diff-baseline.markdown",
        "diff-baseline.json",
        "diff-baseline_grep.text",
    ),
    "car_debug": ("events.text", "explain.text"),
    "baseline_grep": ("timeline.text", "explain.text"),
    "0.4.4-new-fakecuda-tp1": ("timeline.text",),
    "0.5.9-new-eagle-tp2": ("timeline.text", "events.jsonl"),
    "0.5.14-new-eagle-tp2": ("timeline.text", "explain.text", "diff-0.5.9-new-eagle-tp2.text"),
    "0.5.9-fakecuda-tp2-dp2": ("serving.text", "serving.markdown", "timeline.text", "diff-0.5.9-fakecuda-tp8.text"),
    "0.5.9-fakecuda-graph-oom": ("timeline.text", "events.text", "explain.text", "explain.json"),
    "0.5.9-new-swa-tp1": ("timeline.text", "serving.csv"),
    "0.5.23-new-mamba-tp1": ("timeline.text", "explain.text", "serving.json"),
    "0.5.23-kill9-scheduler": ("timeline.text", "explain.text"),
    "0.5.23-unknown-flag": ("timeline.text", "explain.text"),
    "0.5.18-new-fakecuda-notenough": ("explain.text",),
    "0.5.9-fakecuda-imbalance": ("explain.text",),
    "0.4.10.post2-tp2": ("explain.text",),
    "0.5.23-port-in-use": ("explain.text",),
    "0.5.9-truncated": ("explain.text",),
}
COMMANDS = ("timeline", "events", "explain", "diff", "serving")
FILES = [(case, name) for case, names in GOLDEN.items() for name in names]


def read_name(name: str) -> tuple[str, str, str]:
    """Return command, the other case of a diff, and format of "explain.text" or "diff-0.5.9-ok.text"."""
    stem, _, form = name.rpartition(".")
    command, _, other = stem.partition("-")
    return command, other, form


def run_logscope(*words: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "logscope", *words], cwd=cwd, capture_output=True, check=False, env=environment
    )


def test_the_golden_outputs_are_all_here() -> None:
    kept = sorted(path for path in FIXTURES.glob("*/expected/*.*") if read_name(path.name)[0] in COMMANDS)
    assert sorted(FIXTURES / case / "expected" / name for case, name in FILES) == kept


@pytest.mark.parametrize(("case", "name"), FILES)
def test_output_is_what_was_read_and_approved(case: str, name: str, pytestconfig: pytest.Config) -> None:
    command, other, form = read_name(name)
    if other:
        done = run_logscope(command, f"{other}/launch.log", f"{case}/launch.log", "-f", form, cwd=FIXTURES)
    else:
        done = run_logscope(command, "launch.log", "-f", form, cwd=FIXTURES / case)
    assert (0, b"") == (done.returncode, done.stderr)
    path = FIXTURES / case / "expected" / name
    if pytestconfig.getoption("--update-golden"):
        path.write_bytes(done.stdout)
    assert path.read_bytes().decode() == done.stdout.decode()


@pytest.mark.parametrize(
    ("case", "name"), [file for file in FILES if file[1].endswith(".text") and file[1] != "events.text"]
)
def test_text_fits_eighty_columns(case: str, name: str) -> None:
    text = (FIXTURES / case / "expected" / name).read_text(encoding="utf-8")
    assert [] == [line for line in text.splitlines() if len(line) > 80]
    assert [] == [line for line in text.splitlines() if line != line.rstrip()]
