"""Where logs come from: plain, .gz and .zst files, standard input, globs and directories, as blocks of bytes.

Memory stays constant whatever the size of the log: one block at a time.
"""

from __future__ import annotations

import codecs
import glob
import io
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Protocol, cast

from msgspec import Struct

from logscope.errors import MissingExtraError, SourceError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

BLOCK_BYTES = 1 << 20
_PACKED_BYTES = 1 << 14  # read at once from compressed files: a log may shrink a hundredfold
STDIN = "-"
_LOG_NAME = re.compile(r"\.(log|txt|out|err|stdout|stderr)([.-]\d+)?(\.gz|\.zst)?$", re.IGNORECASE)
_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_UTF16_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class Source(Struct, frozen=True):
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
    found: dict[Path | None, Source] = {}
    for typed in paths:
        for source in _expand(typed):
            found.setdefault(source.path.resolve() if source.path is not None else None, source)
    return list(found.values())


def _expand(typed: str) -> list[Source]:
    if typed == STDIN:
        return [Source(STDIN, None)]
    if not typed:  # a variable that is not set; Path("") would be this directory
        raise SourceError("a log has no name: ''\n  do: name a file, a directory or a glob; - is standard input")
    path = Path(typed)
    if path.is_dir():
        logs = sorted((p for p in path.rglob("*") if p.is_file() and _LOG_NAME.search(p.name)), key=_natural)
        if not logs:
            raise SourceError(
                f"no log in directory {typed}\n  do: name the file, or give files that end in .log, .txt, .out or .err"
            )
        return [_named(log) for log in logs]
    if path.exists():
        return [_named(path, typed)]
    found = (Path(match) for match in glob.glob(typed, recursive=True))  # noqa: PTH207 # absolute patterns
    matches = sorted((path for path in found if path.is_file()), key=_natural)
    if not matches:
        kind = "nothing matches" if glob.has_magic(typed) else "no such file:"
        raise SourceError(f"{kind} {typed}{_nearby(path)}")
    return [_named(match) for match in matches]


def _named(path: Path, typed: str = "") -> Source:
    """Return a source under a name that can be shown: file names may hold bytes that are no UTF-8."""
    return Source(os.fsencode(typed or path).decode("utf-8", errors="replace"), path)


def _nearby(path: Path) -> str:
    if not path.parent.is_dir() or glob.has_magic(str(path)):
        return "\n  do: check the path"
    logs = sorted(p.name for p in path.parent.iterdir() if _LOG_NAME.search(p.name))[:5]
    return f"\n  do: check the path; {path.parent} has {', '.join(logs)}" if logs else "\n  do: check the path"


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sort node2.log before node10.log."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", str(path))]


def read_blocks(source: Source, on_read: Callable[[int], None] | None = None) -> Iterator[bytes | bytearray]:
    """Yield the log as blocks of UTF-8 bytes, decompressed. A block may be filled anew for the next one: copy what is kept.

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


class _Counted(io.RawIOBase):
    """A raw stream that reports what is taken from it, and lets its first bytes be seen."""

    def __init__(self, raw: IO[bytes], on_read: Callable[[int], None] | None) -> None:
        self._raw, self._on_read = raw, on_read
        self._ahead = b""

    def readable(self) -> bool:
        return True

    def peek(self, count: int) -> bytes:
        while len(self._ahead) < count and (more := self._take(count)):
            self._ahead += more
        return self._ahead[:count]

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        if not self._ahead:
            count = cast("io.RawIOBase", self._raw).readinto(view) or 0
            self._report(count)
            return count
        block, self._ahead = self._ahead[: len(view)], self._ahead[len(view) :]
        view[: len(block)] = block
        return len(block)

    def _take(self, count: int) -> bytes:
        block = self._raw.read(count) or b""
        self._report(len(block))
        return block

    def _report(self, count: int) -> None:
        if count and self._on_read is not None:
            self._on_read(count)


def _decoded(stream: _Counted) -> Iterator[bytes | bytearray]:
    head = stream.peek(4)
    if head.startswith(_GZIP_MAGIC):
        yield from _read_gzip(stream)
    elif head.startswith(_ZSTD_MAGIC):
        yield from _read_zstd(stream)
    elif head[:2] in _UTF16_MARKS:
        decoder = codecs.getincrementaldecoder(_UTF16_MARKS[head[:2]])(errors="replace")
        while block := stream.read(BLOCK_BYTES):
            yield decoder.decode(block).encode("utf-8")
        yield decoder.decode(b"", final=True).encode("utf-8")
    else:
        yield from _read_plain(stream)


def _read_plain(stream: _Counted) -> Iterator[bytes | bytearray]:
    """Yield blocks in one buffer that is filled anew: a fresh block each time costs 7 times as much, in page faults."""
    buffer = bytearray(BLOCK_BYTES)
    while count := stream.readinto(buffer):
        yield buffer if count == len(buffer) else buffer[:count]


def _read_gzip(stream: _Counted) -> Iterator[bytes]:
    library: ModuleType = zlib
    with suppress(ImportError):
        from isal import isal_zlib

        library = isal_zlib
    return _read_members(stream, lambda: cast("_Member", library.decompressobj(wbits=31)), library.error)


def _read_zstd(stream: _Counted) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError("reading .zst", "zst") from error
    decompressor = zstandard.ZstdDecompressor()
    return _read_members(stream, lambda: cast("_Member", decompressor.decompressobj()), zstandard.ZstdError)


class _Member(Protocol):
    """The decompressor of one gzip member or zstd frame."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def _read_members(stream: _Counted, new_member: Callable[[], _Member], damage: type[Exception]) -> Iterator[bytes]:
    """Decompress one member after the other. File objects would lose what comes just before a damage, or not tell a truncated file."""
    member = new_member()
    try:
        while packed := stream.read(_PACKED_BYTES):
            while packed:
                if member.eof:
                    packed = packed.lstrip(b"\0")  # padding between members
                    if not packed:
                        break
                    member = new_member()
                if block := member.decompress(packed):
                    yield block
                packed = member.unused_data
    except damage as error:
        raise OSError(f"damaged data: {error}") from error
    if not member.eof:
        raise EOFError("its compressed data end too early")
