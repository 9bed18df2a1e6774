"""The pattern files that come with logscope: read from a form made when the wheel is built, from TOML in a source checkout."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable
from pathlib import Path

from logscope.packs.types import Packs

STORED = "packs.pickle"


def builtin_dir() -> Path:
    """Return the folder of the pattern files that come with logscope."""
    inside = Path(__file__).parent.parent / "_packs"
    return inside if inside.is_dir() else Path(__file__).parent.parent.parent / "patterns"


def load_packs(extra_dirs: Iterable[Path] = ()) -> Packs:
    """Read the built-in pattern files and those of ``extra_dirs``.

    Raises:
        PackError: a file is not TOML, or says something that docs/patterns.md does not know. Samples are not tried here:
            ``packcheck.check_packs`` does that.
    """
    directories = list(extra_dirs)
    stored = None if directories else read_stored(builtin_dir())
    if stored is not None:
        return stored
    from logscope.packs.load import (  # reading TOML takes four times as long as all of the stored form
        pack_files,
        read_files,
    )

    return read_files(pack_files(directories))


def read_stored(directory: Path) -> Packs | None:
    """Return the stored form of a folder's pattern files; None if there is none, or a file has changed since it was made."""
    try:
        checksum, packs = pickle.loads((directory / STORED).read_bytes())  # noqa: S301 # a file of the wheel, as the code is
    except FileNotFoundError:
        return None
    return packs if checksum == _checksum(directory) and isinstance(packs, Packs) else None


def stored_form(packs: Packs, directory: Path) -> bytes:
    """Return what ``read_stored`` reads, for packs that were read from a folder."""
    return pickle.dumps((_checksum(directory), packs), protocol=5)


def _checksum(directory: Path) -> int:
    total = 0
    for path in sorted(directory.glob("*.toml")):
        total = zlib.crc32(path.read_bytes(), zlib.crc32(path.name.encode(), total))
    return total
