"""Run the program as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def logscope(*words: str, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the program as a user does, 80 columns wide."""
    done = subprocess.run(
        [sys.executable, "-m", "logscope", *words],
        input=stdin,
        cwd=cwd,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "80"},
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
