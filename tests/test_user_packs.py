"""A user's folder teaches logscope lines, wordings, a whole phase and a prefix: no Python is touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import logscope
from conftest import at, gb, graph_lines, init_lines, load_lines, log, pool_lines, printed_args
from logscope.events import Recogniser
from logscope.model import Launch
from logscope.packcheck import load_checked_packs
from logscope.reading import Reading, read_launches

OF_A_KNOWN_PHASE = """\
[phase]
id = "load_weights"

[[event]]
id       = "load_weights.staging"
means    = "our loader keeps a staging buffer on the device"
edge     = "point"
said_by  = "every rank"
contains = "staging buffer of our loader"
fields.staging = { unit = "MiB", item = "loader staging" }

  [[event.form]]
  regex = '''^staging buffer of our loader: (?P<staging>[\\d.]+) MiB'''
    [[event.form.sample]]
    line = "[2026-01-05 10:00:00 TP0] staging buffer of our loader: 512 MiB"
    want = { staging = 512 }
"""

OF_A_NEW_PHASE = """\
[phase]
id    = "plugin"
title = "Our plugin"
order = 35
once  = true

[[event]]
id       = "plugin.begin"
means    = "our plugin starts to take its workspace"
edge     = "begin"
said_by  = "every rank"
contains = "Our plugin begins"
fields.avail_mem = { unit = "GiB" }

  [[event.form]]
  regex = '''^Our plugin begins, (?P<avail_mem>-?[\\d.]+) GB free'''
    [[event.form.sample]]
    line = "[2026-01-05 10:00:00 TP0] Our plugin begins, 21.71 GB free"
    want = { avail_mem = 21.71 }

[[event]]
id       = "plugin.end"
means    = "our plugin holds its workspace"
edge     = "end"
said_by  = "every rank"
contains = "Our plugin is ready"
fields.avail_mem = { unit = "GiB" }
fields.mem_usage = { unit = "GiB", item = "plugin workspace" }
fields.elapsed   = { unit = "s" }

  [[event.form]]
  regex = '''^Our plugin is ready after (?P<elapsed>[\\d.]+) s: took (?P<mem_usage>-?[\\d.]+) GB, (?P<avail_mem>-?[\\d.]+) GB free'''
    [[event.form.sample]]
    line = "[2026-01-05 10:00:00 TP0] Our plugin is ready after 2.50 s: took 1.50 GB, 20.21 GB free"
    want = { elapsed = 2.5, mem_usage = 1.5, avail_mem = 20.21 }
"""

OF_A_PREFIX = """\
[[outer]]
id    = "our_supervisor"
regex = '''^~(?P<origin>[\\w-]+)~ (?P<time>\\d\\d:\\d\\d:\\d\\d) '''
rejects = ["~a~ text"]
  [[outer.sample]]
  line = "~job-7~ 11:00:00 Load weight begin."
  want = { origin = "job-7", time = "11:00:00", rest = "Load weight begin." }
"""

OF_A_FUTURE_RELEASE = """\
[phase]
id = "load_weights"

[[event]]
id       = "load_weights.end_renamed"
means    = "this rank holds its weights (a wording that logscope does not know yet)"
edge     = "end"
said_by  = "every rank"
contains = "Load weight end."
fields.avail_mem = { unit = "GiB" }
fields.mem_usage = { unit = "GiB", item = "weights" }

  [[event.form]]
  since = "0.9.0"
  regex = '''^Load weight end\\. (?P<mem_usage>-?[\\d.]+) GiB taken, (?P<avail_mem>-?[\\d.]+) GiB left'''
    [[event.form.sample]]
    line = "[2026-01-05 10:00:20 TP0] Load weight end. 72.33 GiB taken, 21.71 GiB left"
    want = { mem_usage = 72.33, avail_mem = 21.71 }
"""

PLUGIN = [
    at("10:00:20", "TP0", "staging buffer of our loader: 512 MiB"),
    at("10:00:20", "TP0", "Our plugin begins, 21.21 GB free"),
    at("10:00:21", "TP0", "Our plugin is ready after 2.50 s: took 1.50 GB, 19.71 GB free"),
]
LINES = [
    printed_args(tp_size=1),
    *init_lines(),
    *load_lines(),
    *PLUGIN,
    *pool_lines(after="9.26"),
    *graph_lines(before="9.26", after="7.85"),
    at("10:00:55", "", "The server is fired up and ready to roll!"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with an event for a known phase, a new phase, and a prefix."""
    path = tmp_path / "our-patterns"
    path.mkdir()
    (path / "known.toml").write_text(OF_A_KNOWN_PHASE)
    (path / "plugin.toml").write_text(OF_A_NEW_PHASE)
    (path / "envelope.toml").write_text(OF_A_PREFIX)
    return path


@pytest.fixture
def run_log(tmp_path: Path) -> Path:
    """Return the log of a launch under a supervisor that only the user's folder knows."""
    path = tmp_path / "run.log"
    path.write_text(log(*(f"~job-7~ 11:00:00 {line}" for line in LINES)))
    return path


def logscope_command(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "logscope", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def read_with(folder: Path, path: Path) -> Launch:
    packs, _ = load_checked_packs([folder])
    (launch,) = read_launches([str(path)], Reading(packs), Recogniser(packs))
    return launch


def test_without_the_folder_the_lines_are_not_known(run_log: Path) -> None:
    (launch,) = logscope.read(run_log)
    assert "plugin" not in set(launch.frames.phases["phase"])
    assert {None} == {(event.pos.file and event.origin) or None for event in launch.launch.events}


def test_a_new_phase_stands_in_the_timeline(folder: Path, run_log: Path) -> None:
    done = logscope_command("timeline", run_log, "--patterns", folder)
    assert (0, "") == (done.returncode, done.stderr)
    lines = done.stdout.splitlines()
    titles = [line.strip().partition("  ")[0] for line in lines]
    where = [titles.index(title) for title in ("Load weights", "Our plugin", "Memory pools in all")]
    assert sorted(where) == where
    (row,) = [line.split() for line in lines if line.strip().startswith("Our plugin  ")][:1]
    assert {"2.50", "1.50", "19.71"} <= set(row)
    assert any(line.strip().startswith("plugin workspace") and "1.50" in line and "measured" in line for line in lines)
    assert any(line.strip().startswith("loader staging") and "0.50" in line for line in lines)


def test_a_new_phase_stands_in_the_frames(folder: Path, run_log: Path) -> None:
    (launch,) = logscope.read(run_log, patterns=folder)
    phases = launch.frames.phases
    assert isinstance(phases, pd.DataFrame)
    (row,) = phases[phases["phase"] == "plugin"].to_dict("records")
    assert (2.5, gb("1.50"), gb("21.21"), gb("19.71")) == (
        row["duration_s"],
        row["used_bytes"],
        row["before_bytes"],
        row["after_bytes"],
    )


def test_a_new_phase_is_a_row_of_the_ledger_that_still_adds_up(folder: Path, run_log: Path) -> None:
    (launch,) = logscope.read(run_log, patterns=folder)
    ledger = launch.frames.ledger
    amounts = dict(zip(ledger["item"], ledger["bytes"], strict=True))
    assert abs(gb("1.50") - amounts["plugin workspace"]) <= 64
    assert abs(gb("0.50") - amounts["loader staging"]) <= 64
    (rank,) = set(ledger["rank"])
    own = ledger[ledger["rank"] == rank]
    assert own["free_before_bytes"].iloc[0] - own["bytes"].sum() == own["free_after_bytes"].iloc[-1]


def test_the_prefix_of_a_user_gives_origin_and_clock(folder: Path, run_log: Path) -> None:
    launch = read_with(folder, run_log)
    assert {"job-7"} == {event.origin for event in launch.events}
    assert {"11:00:00"} == {event.outer_time for event in launch.events}
    assert "ready" == launch.outcome.kind


def test_an_event_may_be_added_to_a_phase_that_exists(folder: Path, run_log: Path) -> None:
    (event,) = [event for event in read_with(folder, run_log).events if event.pattern.id == "load_weights.staging"]
    quantity = event.quantity("staging_bytes")
    assert quantity is not None
    assert gb("0.5") == quantity.value


def test_a_wording_of_a_future_release_becomes_an_event(tmp_path: Path) -> None:
    """Without the folder it is drift, loud and never fatal; with it the same log has its numbers."""
    path, folder = tmp_path / "run.log", tmp_path / "our"
    begin, _ = load_lines()
    renamed = at("10:00:20", "TP0", "Load weight end. 72.33 GiB taken, 21.71 GiB left")
    path.write_text(log(*init_lines(), begin, renamed, *pool_lines()))
    folder.mkdir()
    (folder / "weights.toml").write_text(OF_A_FUTURE_RELEASE)
    (before,) = logscope.read(path)
    assert [4] == [drift.pos.line for drift in before.launch.drift]
    assert "load_weights.end" in before.launch.drift[0].patterns
    after = read_with(folder, path)
    assert () == tuple(after.drift)
    (span,) = [span for span in after.spans if span.phase == "load_weights"]
    assert span.end is not None
    assert ("load_weights.end_renamed", 4) == (span.end.pattern.id, span.end.pos.line)


def test_a_broken_folder_is_refused_with_all_its_problems(folder: Path, run_log: Path) -> None:
    (folder / "known.toml").write_text(OF_A_KNOWN_PHASE.replace("contains =", "contians ="))
    (folder / "plugin.toml").write_text(OF_A_NEW_PHASE.replace("order = 35", "order = 30"))
    done = logscope_command("timeline", run_log, "--patterns", folder)
    assert (2, "") == (done.returncode, done.stdout)
    for problem in ("known.toml:9: unknown key 'contians'", "known.toml:4: event", "plugin.toml:4: order 30 is taken"):
        assert f"{folder}/{problem}" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith("3 problems in the pattern files\n")


def test_samples_of_a_folder_are_tried_before_it_is_used(folder: Path, run_log: Path) -> None:
    (folder / "known.toml").write_text(OF_A_KNOWN_PHASE.replace("staging = 512 }", "staging = 256 }"))
    (folder / "plugin.toml").write_text(OF_A_NEW_PHASE.replace("mem_usage = 1.5,", "mem_usage = 15,"))
    done = logscope_command("timeline", run_log, "--patterns", folder)
    assert (2, "") == (done.returncode, done.stdout)
    assert f"{folder}/known.toml:14: the sample gives '512' for 'staging', wanted 256\n  do: " in done.stderr
    assert f"{folder}/plugin.toml:33: the sample gives '1.50' for 'mem_usage', wanted 15\n  do: " in done.stderr
