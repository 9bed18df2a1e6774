"""The releases of SGLang on the package index, unpacked and read; what was read of a file is kept in the cache."""

from __future__ import annotations

import ast
import hashlib
import os
import pickle
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.version import InvalidVersion, Version

from . import harvest as harvest_module
from . import scope as scope_module
from . import template as template_module
from .harvest import Message, harvest_text, is_worth_reading, python_files
from .scope import Scope
from .template import Template

FIRST = "0.1.13"  # earlier ones print nothing that the pattern files know
_NAME = re.compile(r"^(_?[A-Z][A-Z0-9_]{4,})(?:: \w+)? = ", re.M)


def cache_dir() -> Path:
    """Return where releases are kept: $LOGSCOPE_CONFORMANCE_CACHE, else ~/.cache/logscope-conformance."""
    return Path(os.environ.get("LOGSCOPE_CONFORMANCE_CACHE") or Path.home() / ".cache" / "logscope-conformance")


def list_releases() -> list[str]:
    """Return the releases on the package index from FIRST on, oldest first."""
    command = [sys.executable, "-m", "pip", "index", "versions", "sglang", "--disable-pip-version-check"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sorted_releases(re.findall(r"[\w.]+", said.partition("Available versions:")[2].partition("\n")[0]))


def sorted_releases(names: list[str]) -> list[str]:
    """Return the final and post releases from FIRST on, oldest first."""
    known: list[Version] = []
    for name in names:
        try:
            version = Version(name)
        except InvalidVersion:
            continue
        if version >= Version(FIRST) and not version.is_prerelease:
            known.append(version)
    return [str(version) for version in sorted(known)]


def fetch(release: str, cache: Path) -> Path:
    """Return the directory of a release, downloaded and unpacked if the cache does not hold it."""
    root = cache / "src" / release
    if (root / "sglang").is_dir():
        return root
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent) as work:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--disable-pip-version-check",
            "-d",
            work,
        ]
        subprocess.run([*command, f"sglang=={release}"], check=True)
        archive = next(path for path in Path(work).iterdir() if path.is_file())
        unpacked = Path(work) / "unpacked"
        _unpack(archive, unpacked)
        package = next(path for path in sorted(unpacked.rglob("sglang")) if (path / "launch_server.py").is_file())
        package.parent.rename(root)
    return root


def _unpack(archive: Path, into: Path) -> None:
    """Unpack the Python files of a wheel or a source distribution."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            names = [name for name in wheel.namelist() if name.endswith(".py")]
            wheel.extractall(into, names)  # noqa: S202 # zipfile takes no path that leads elsewhere
    else:
        with tarfile.open(archive) as source:
            source.extractall(into, [item for item in source if item.name.endswith(".py")], filter="data")


def read_release(release: str, cache: Path) -> tuple[list[Message], dict[str, Template]]:
    """Return the messages of a release, and the text constants of its modules by name."""
    root = fetch(release, cache)
    messages: list[Message] = []
    constants: dict[str, Template] = {}
    for path in python_files(root):
        text = path.read_text(encoding="utf-8-sig", errors="replace")
        name = path.relative_to(root).as_posix()
        if is_worth_reading(name, text):
            found, named = _read_file(name, text, cache)
            messages += found
            constants |= named
    return messages, constants


def _read_file(name: str, text: str, cache: Path) -> tuple[list[Message], dict[str, Template]]:
    """Read a file, or what the cache has of it: most files are the same in the next release."""
    key = hashlib.sha256(f"{_code_version()}\n{__name__}\n{name}\n{text}".encode()).hexdigest()
    kept = cache / "messages" / key[:2] / key
    if kept.is_file():
        loaded: tuple[list[Message], dict[str, Template]] = pickle.loads(kept.read_bytes())  # noqa: S301 # written below
        return loaded
    result = harvest_text(text, name), dict(_constants(text))
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = kept.with_suffix(f".{os.getpid()}")
    partial.write_bytes(pickle.dumps(result))
    partial.rename(kept)
    return result


def _constants(text: str) -> Iterator[tuple[str, Template]]:
    if not _NAME.search(text):
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    scope = Scope(tree.body)
    for found in _NAME.finditer(text):
        values = scope.texts(found[1], 1 << 60)
        if values:
            yield found[1], values[0]


_CODE: list[str] = []


def _code_version() -> str:
    """Return a hash of the code that reads messages: what other code has read is not taken from the cache."""
    if not _CODE:
        code = b"".join(Path(str(m.__file__)).read_bytes() for m in (harvest_module, scope_module, template_module))
        _CODE.append(hashlib.sha256(code).hexdigest())
    return _CODE[0]
