"""Puts the pattern files into the wheel in a form that is read faster than TOML, beside the TOML files."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StorePacks(BuildHookInterface[Any]):
    """Adds ``logscope/_packs/packs.pickle`` to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Read the pattern files and store them; an editable install goes on reading the TOML files."""
        if self.target_name != "wheel" or version == "editable":
            return
        sys.path.insert(0, self.root)
        from logscope.packs.builtin import STORED, stored_form
        from logscope.packs.load import pack_files, read_files

        self._folder = tempfile.TemporaryDirectory()
        stored = Path(self._folder.name) / STORED
        stored.write_bytes(stored_form(read_files(pack_files()), Path(self.root) / "patterns"))
        build_data["force_include"][str(stored)] = f"logscope/_packs/{STORED}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 # hatchling's signature
        """Remove what ``initialize`` wrote."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
