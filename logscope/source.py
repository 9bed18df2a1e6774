"""Where logs come from: plain, .gz and .zst files, standard input, globs and directories, as blocks of bytes.

Memory stays constant whatever the size of the log: one block at a time.
"""

from __future__ import annotations

import codecs
import glob
import gzip
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from logscope.errors import MissingExtraError, SourceError

BLOCK_BYTES = 1 << 20
STDIN = "-"
_LOG_NAME = re.compile(r"\.(log|txt|out|err|stdout|stderr)([.-]\d+)?(\.gz|\.zst)?$", re.IGNORECASE)
_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_UTF16_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@dataclass(frozen=True, slots=True)
class Source:
    """One log to read. ``name`` is shown to people; ``path`` is None for standard input."""

    name: str
    path: Path | None

    @property
    def size(self) -> int | None:
        """Bytes on disk (compressed, if so), None where that is not known."""
        return self.path.stat().st_size if self.path is not None and self.path.is_file() else None

    @property
    def modified(self) -> float | None:
        """When the file was last written, in seconds since 1970; None for a stream."""
        return self.path.stat().st_mtime if self.path is not None and self.path.is_file() else None


def find_sources(paths: Sequence[str]) -> list[Source]:
    """Turn what the user typed (files, directories, globs, ``-``) into logs to read, each once.

    Raises:
        SourceError: a path does not exist, a directory or glob holds no log.
    """
    found: dict[str, Source] = {}
    for typed in paths:
        for source in _expand(typed):
            found.setdefault(source.name, source)
    return list(found.values())


def _expand(typed: str) -> list[Source]:
    if typed == STDIN:
        return [Source(STDIN, None)]
    path = Path(typed)
    if path.is_dir():
        logs = sorted((p for p in path.rglob("*") if p.is_file() and _LOG_NAME.search(p.name)), key=_natural)
        if not logs:
            raise SourceError(
                f"no log in directory {typed}\n  do: name the file, or give files that end in .log, .txt, .out or .err"
            )
        return [Source(str(log), log) for log in logs]
    if path.exists():
        return [Source(typed, path)]
    matches = sorted((Path(match) for match in glob.glob(typed, recursive=True)), key=_natural)  # noqa: PTH207 # absolute patterns
    if not matches:
        kind = "nothing matches" if glob.has_magic(typed) else "no such file:"
        raise SourceError(f"{kind} {typed}{_nearby(path)}")
    return [Source(str(match), match) for match in matches if match.is_file()]


def _nearby(path: Path) -> str:
    if not path.parent.is_dir() or glob.has_magic(str(path)):
        return "\n  do: check the path"
    logs = sorted(p.name for p in path.parent.iterdir() if _LOG_NAME.search(p.name))[:5]
    return f"\n  do: check the path; {path.parent} has {', '.join(logs)}" if logs else "\n  do: check the path"


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sort node2.log before node10.log."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", str(path))]


def read_blocks(source: Source, on_read: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """Yield the log as blocks of UTF-8 bytes, decompressed.

    Args:
        source: what to read.
        on_read: called with the number of bytes taken from the file (compressed bytes, if it is compressed).

    Raises:
        SourceError: the file cannot be opened or is damaged. What could be read until then has been yielded.
    """
    try:
        with _open(source) as raw:
            counted = _Counted(raw, on_read)
            yield from _decoded(counted)
    except MissingExtraError:
        raise
    except (OSError, EOFError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise SourceError(f"cannot read {source.name}: {reason}\n  do: check the file and its permissions") from error


def _open(source: Source) -> IO[bytes]:
    if source.path is None:
        return cast("IO[bytes]", open(sys.stdin.fileno(), "rb", buffering=0, closefd=False))
    return cast("IO[bytes]", source.path.open("rb", buffering=0))


class _Counted:
    """A raw stream that reports what is taken from it, and lets its first bytes be seen."""

    def __init__(self, raw: IO[bytes], on_read: Callable[[int], None] | None) -> None:
        self._raw, self._on_read = raw, on_read
        self._ahead = b""

    def peek(self, count: int) -> bytes:
        while len(self._ahead) < count:
            more = self._take(count)
            if not more:
                break
            self._ahead += more
        return self._ahead[:count]

    def read(self, count: int = BLOCK_BYTES) -> bytes:
        if count < 0:
            count = BLOCK_BYTES
        if self._ahead:
            block, self._ahead = self._ahead[:count], self._ahead[count:]
            return block
        return self._take(count)

    def _take(self, count: int) -> bytes:
        block = self._raw.read(count) or b""
        if block and self._on_read is not None:
            self._on_read(len(block))
        return block


def _decoded(stream: _Counted) -> Iterator[bytes]:
    head = stream.peek(4)
    if head.startswith(_GZIP_MAGIC):
        yield from _read_all(_gzip_reader(stream))
    elif head.startswith(_ZSTD_MAGIC):
        yield from _read_all(_zstd_reader(stream))
    elif head[:2] in _UTF16_MARKS:
        decoder = codecs.getincrementaldecoder(_UTF16_MARKS[head[:2]])(errors="replace")
        for block in _read_all(stream):
            yield decoder.decode(block).encode("utf-8")
    else:
        yield from _read_all(stream)


def _read_all(stream: _Counted | IO[bytes]) -> Iterator[bytes]:
    while block := stream.read(BLOCK_BYTES):
        yield block


def _gzip_reader(stream: _Counted) -> IO[bytes]:
    try:
        from isal import igzip
    except ImportError:
        return cast("IO[bytes]", gzip.GzipFile(fileobj=stream))  # type: ignore[call-overload] # read() is all it needs
    return cast("IO[bytes]", igzip.IGzipFile(fileobj=stream))  # type: ignore[no-untyped-call]


def _zstd_reader(stream: _Counted) -> IO[bytes]:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError("reading .zst", "zst") from error
    return cast(
        "IO[bytes]", zstandard.ZstdDecompressor().stream_reader(cast("IO[bytes]", stream), read_across_frames=True)
    )
