"""A folder as a CI job has it: a rules file, and a log that passes it, one that breaks it, and one that cannot be judged by it."""

from __future__ import annotations

import shutil
from pathlib import Path

from conftest import FIXTURES

RULES = """\
version = 1

[[rule]]
id = "ready"
why = "nothing below means anything if the server never came up"
expect = { reach = "ready.fired_up" }

[[rule]]
id = "kv-floor"
why = "two requests of 64k tokens have to fit"
select = { event = "kv_cache.allocated", field = "tokens" }
expect = { min = ">= 150k tokens" }

  [[rule.test]]
  given = ["[2026-01-05 10:00:21 TP0] KV Cache is allocated. #tokens: 100, KV size: 0.01 GB"]
  expect = "fail"

  [[rule.test]]
  given = ["[2026-01-05 10:00:21 TP0] KV Cache is allocated. #tokens: 159269, KV size: 10.42 GB"]
  expect = "pass"
"""
LINES_TO_WEIGHTS = 40  # of the log that works: the weights are being loaded, no rank has a KV cache yet


def write_job(folder: Path) -> None:
    """Write ``logscope.toml``, ``good.log``, ``bad.log`` and ``cut.log``."""
    (folder / "logscope.toml").write_text(RULES, encoding="utf-8")
    shutil.copy(FIXTURES / "baseline" / "launch.log", folder / "good.log")
    shutil.copy(FIXTURES / "car" / "launch.log", folder / "bad.log")
    lines = (folder / "good.log").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "cut.log").write_text("".join(lines[:LINES_TO_WEIGHTS]), encoding="utf-8")
