"""Logs are found as typed and read as blocks of bytes, as far as they can be read."""

import builtins
import gzip
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logscope.errors import MissingExtraError, SourceError
from logscope.source import BLOCK_BYTES, STDIN, Source, find_sources, read_blocks

# no line repeats, so that it does not shrink to nothing
TEXT = b"".join(b"%d line %d\n" % (number * 2_654_435_761 % 10**9, number) for number in range(150_000))
ROOT = Path(__file__).parents[1]


def read_all(path: Path, on_read: Callable[[int], None] | None = None) -> bytes:
    return b"".join(bytes(block) for block in read_blocks(Source(str(path), path), on_read))


def read_until_error(path: Path) -> tuple[bytes, str]:
    """Return what was read before the error, and the error."""
    got = []
    with pytest.raises(SourceError) as caught:
        for block in read_blocks(Source(str(path), path)):
            got.append(bytes(block))  # noqa: PERF401 # what came before the error counts
    return b"".join(got), str(caught.value)


def names(*typed: object) -> list[str]:
    return [source.name for source in find_sources([str(item) for item in typed])]


# ---- reading --------------------------------------------------------------------------------------------------------


def test_text_is_larger_than_a_block() -> None:
    assert len(TEXT) > 2 * BLOCK_BYTES


@pytest.mark.parametrize("body", [b"", b"x", b"one\ntwo\n", b"no end", b"\n", TEXT])
def test_plain_file_is_read_byte_by_byte(tmp_path: Path, body: bytes) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(body)
    assert body == read_all(log)


def test_blocks_stay_small_and_are_never_empty(tmp_path: Path) -> None:
    for name, body, largest in (
        ("run.log", TEXT, BLOCK_BYTES),
        ("run.log.gz", gzip.compress(b"a" * 60_000_000), 20_000_000),
    ):
        log = tmp_path / name
        log.write_bytes(body)
        sizes = [len(block) for block in read_blocks(Source(name, log))]
        assert 0 < min(sizes)
        assert max(sizes) <= largest


def test_gzip_is_told_by_its_first_bytes_not_its_name(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(gzip.compress(TEXT))
    assert TEXT == read_all(log)


def test_gzip_of_several_members_is_one_log(tmp_path: Path) -> None:
    log = tmp_path / "run.log.gz"
    log.write_bytes(gzip.compress(TEXT) + gzip.compress(b"") + gzip.compress(b"last\n"))
    assert TEXT + b"last\n" == read_all(log)


def test_zero_bytes_after_gzip_members_are_padding(tmp_path: Path) -> None:
    log = tmp_path / "run.log.gz"
    log.write_bytes(gzip.compress(b"first\n") + bytes(512) + gzip.compress(b"last\n") + bytes(40_000))
    assert b"first\nlast\n" == read_all(log)


def test_gzip_with_a_wrong_checksum_is_read_and_then_an_error(tmp_path: Path) -> None:
    log = tmp_path / "run.log.gz"
    compressed = bytearray(gzip.compress(b"first\n"))
    compressed[-5] ^= 1
    log.write_bytes(bytes(compressed))
    got, error = read_until_error(log)
    assert b"first\n".startswith(got)
    assert error.startswith(f"cannot read {log}: damaged data: ")


def test_empty_gzip_is_an_empty_log(tmp_path: Path) -> None:
    log = tmp_path / "run.log.gz"
    log.write_bytes(gzip.compress(b""))
    assert b"" == read_all(log)


def test_truncated_gzip_yields_what_could_be_read_and_then_an_error(tmp_path: Path) -> None:
    log = tmp_path / "run.log.gz"
    compressed = gzip.compress(TEXT)
    cut = len(compressed) * 3 // 4
    log.write_bytes(compressed[:cut])
    got, error = read_until_error(log)
    readable = zlib.decompressobj(wbits=31).decompress(compressed[:cut])
    assert TEXT.startswith(got)
    assert len(readable) - len(got) < 70_000  # the decompressor may hold back the window it is in
    assert error.startswith(f"cannot read {log}: ")
    assert "\n  do: " in error


def test_damaged_gzip_yields_what_could_be_read_and_then_an_error(tmp_path: Path) -> None:
    log = tmp_path / "run.log.gz"
    compressed = bytearray(gzip.compress(TEXT))
    half = len(compressed) // 2
    compressed[half : half + 200] = b"\xff" * 200
    log.write_bytes(bytes(compressed))
    got, error = read_until_error(log)
    assert TEXT[:100_000] == got[:100_000]
    assert error.startswith(f"cannot read {log}: ")


def test_gzip_that_is_only_a_magic_number_is_an_error(tmp_path: Path) -> None:
    log = tmp_path / "run.log.gz"
    log.write_bytes(b"\x1f\x8b")
    got, error = read_until_error(log)
    assert b"" == got
    assert error.startswith(f"cannot read {log}: ")


@pytest.mark.parametrize("cut", [0, 100])
def test_gzip_is_read_alike_without_the_fast_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    log = tmp_path / "run.log.gz"
    compressed = gzip.compress(TEXT)
    log.write_bytes(compressed[: len(compressed) - cut])
    without(monkeypatch, "isal")
    if not cut:
        assert TEXT == read_all(log)
        return
    got, _ = read_until_error(log)
    assert TEXT.startswith(got)
    assert len(TEXT) - len(got) < 70_000


def without(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """Make a package look as if it were not installed."""
    real = builtins.__import__

    def fake(name: str, *args: object, **kwargs: object) -> object:
        if name.split(".")[0] == missing:
            raise ImportError(name)
        return real(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", fake)


def test_zst_of_several_frames_is_one_log(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="needs the optional package zstandard")
    log = tmp_path / "run.log.zst"
    log.write_bytes(zstandard.compress(TEXT) + zstandard.compress(b"last\n"))
    assert TEXT + b"last\n" == read_all(log)


def test_truncated_zst_yields_what_could_be_read_and_then_an_error(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="needs the optional package zstandard")
    log = tmp_path / "run.log.zst"
    compressed = zstandard.compress(TEXT)
    log.write_bytes(compressed[: len(compressed) * 3 // 4])
    got, error = read_until_error(log)
    assert TEXT.startswith(got)
    assert len(got) > len(TEXT) // 2
    assert error.startswith(f"cannot read {log}: ")


def test_damaged_zst_yields_what_could_be_read_and_then_an_error(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="needs the optional package zstandard")
    log = tmp_path / "run.log.zst"
    log.write_bytes(zstandard.compress(b"first\n") + b"\x28\xb5\x2f\xfd" + b"\xff" * 40)
    got, error = read_until_error(log)
    assert b"first\n" == got
    assert error.startswith(f"cannot read {log}: ")


def test_zst_without_its_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "run.log.zst"
    log.write_bytes(b"\x28\xb5\x2f\xfd\x00\x00")
    without(monkeypatch, "zstandard")
    with pytest.raises(
        MissingExtraError, match=r"reading \.zst needs an optional package\n  do: pip install 'sglang-logscope\[zst\]'"
    ):
        read_all(log)


@pytest.mark.parametrize(("mark", "codec"), [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")])
def test_utf_16_with_a_byte_order_mark_becomes_utf_8(tmp_path: Path, mark: bytes, codec: str) -> None:
    log = tmp_path / "run.log"
    text = "Load weight begin. 100%|██████| é𐍈\r\n" * 40_000
    log.write_bytes(mark + text.encode(codec))
    assert text == read_all(log).decode().removeprefix("\ufeff")


def test_utf_16_that_ends_inside_a_character_is_read_to_there(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(b"\xff\xfe" + "ab".encode("utf-16-le") + b"c")
    assert "ab\ufffd" == read_all(log).decode().removeprefix("\ufeff")


def test_on_read_sums_to_the_size_of_the_file(tmp_path: Path) -> None:
    bodies = {
        "plain.log": TEXT,
        "empty.log": b"",
        "tiny.log": b"x",
        "a.log.gz": gzip.compress(TEXT),
        "b.log.gz": gzip.compress(TEXT) + gzip.compress(b"last\n"),
        "wide.log": b"\xff\xfe" + TEXT.decode().encode("utf-16-le"),
    }
    for name, body in bodies.items():
        log = tmp_path / name
        log.write_bytes(body)
        counts: list[int] = []
        read_all(log, counts.append)
        assert len(body) == sum(counts), name
        assert Source(name, log).size == sum(counts)


def test_on_read_sums_to_the_size_of_a_zst_file(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="needs the optional package zstandard")
    log = tmp_path / "run.log.zst"
    log.write_bytes(zstandard.compress(TEXT) + zstandard.compress(b"last\n"))
    counts: list[int] = []
    read_all(log, counts.append)
    assert log.stat().st_size == sum(counts)


@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused_in_words(tmp_path_factory: pytest.TempPathFactory, body: bytes) -> None:
    log = tmp_path_factory.getbasetemp() / "any.log"
    log.write_bytes(body)
    try:
        got = read_all(log)
    except SourceError:
        assert body.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))
        return
    if not body.startswith((b"\xff\xfe", b"\xfe\xff")):
        assert body == got


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="only where permissions bind")
def test_file_without_permission_is_an_error(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(b"x")
    log.chmod(0)
    got, error = read_until_error(log)
    assert b"" == got
    assert f"cannot read {log}: Permission denied\n  do: check the file and its permissions" == error


def test_file_that_vanished_is_an_error(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    got, error = read_until_error(log)
    assert b"" == got
    assert f"cannot read {log}: No such file or directory\n  do: check the file and its permissions" == error


READY = b"""\
[2026-01-05 10:00:00 TP0] Load weight begin. avail mem=78.52 GB
[2026-01-05 10:00:09] The server is fired up and ready to roll!
"""


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_is_read(pack: Callable[[bytes], bytes]) -> None:
    command = [sys.executable, "-m", "logscope", "timeline", "-"]
    done = subprocess.run(command, input=pack(READY), capture_output=True, cwd=ROOT, check=False)
    assert (0, b"") == (done.returncode, done.stderr)
    assert b"ready: 1 rank" in done.stdout


def test_standard_input_without_a_launch_cannot_be_judged() -> None:
    command = [sys.executable, "-m", "logscope", "timeline", "-"]
    done = subprocess.run(command, input=b"hello\n", capture_output=True, cwd=ROOT, check=False)
    assert (3, b"") == (done.returncode, done.stdout)
    assert b"no SGLang launch in standard input" in done.stderr


# ---- finding --------------------------------------------------------------------------------------------------------


def test_several_paths_keep_the_order_typed(tmp_path: Path) -> None:
    for name in ("b.log", "a.log"):
        (tmp_path / name).write_bytes(b"x")
    assert [f"{tmp_path}/b.log", f"{tmp_path}/a.log"] == names(tmp_path / "b.log", tmp_path / "a.log")


def test_the_same_path_twice_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.log").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    assert ["a.log"] == names("a.log", "a.log")
    assert ["a.log"] == names("a.log", "./a.log", tmp_path / "a.log", "*.log", ".")
    assert [STDIN] == names("-", "-")


def test_standard_input_is_a_source_without_a_path() -> None:
    (source,) = find_sources([STDIN])
    assert (None, None, None) == (source.path, source.size, source.modified)


def test_glob_finds_files_in_natural_order(tmp_path: Path) -> None:
    for name in ("node10.log", "node2.log", "node1.log", "other.txt"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "node3.log").mkdir()
    assert [f"{tmp_path}/node{n}.log" for n in (1, 2, 10)] == names(tmp_path / "node*.log")


def test_recursive_glob_reaches_subdirectories(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x.log").write_bytes(b"x")
    assert [f"{tmp_path}/a/b/x.log"] == names(tmp_path / "**" / "*.log")


def test_file_whose_name_looks_like_a_glob_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "run[1].log").write_bytes(b"x")
    (tmp_path / "run1.log").write_bytes(b"x")
    assert [f"{tmp_path}/run[1].log"] == names(tmp_path / "run[1].log")


def test_directory_gives_its_logs_in_natural_order(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    logs = ["job1.out", "node1²3.log", "node2.log", "node10.log.gz", "server.log.1", "server.log.10.zst", "sub/a.err"]
    for name in [*logs, "config.json", "model.safetensors", "catalogue"]:
        (tmp_path / name).write_bytes(b"x")
    assert [f"{tmp_path}/{name}" for name in logs] == names(tmp_path)


def refusal(*typed: object) -> str:
    with pytest.raises(SourceError) as caught:
        names(*typed)
    return str(caught.value)


def test_directory_without_a_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"{}")
    do = "name the file, or give files that end in .log, .txt, .out or .err"
    assert f"no log in directory {tmp_path}\n  do: {do}" == refusal(tmp_path)


def test_missing_file_names_the_logs_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_bytes(b"x")
    missing = tmp_path / "rnu.log"
    assert f"no such file: {missing}\n  do: check the path; {tmp_path} has run.log" == refusal(missing)


def test_missing_file_in_a_missing_directory_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "no" / "run.log"
    assert f"no such file: {missing}\n  do: check the path" == refusal(missing)


def test_glob_without_a_match_is_refused(tmp_path: Path) -> None:
    assert f"nothing matches {tmp_path}/*.log\n  do: check the path" == refusal(tmp_path / "*.log")


def test_glob_that_matches_only_directories_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.log").mkdir()
    assert f"nothing matches {tmp_path}/*.log\n  do: check the path" == refusal(tmp_path / "*.log")


def test_a_variable_that_is_not_set_is_not_this_directory() -> None:
    with pytest.raises(SourceError, match="a log has no name"):
        find_sources([""])


def test_one_missing_file_among_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_bytes(b"x")
    assert refusal(tmp_path / "run.log", tmp_path / "gone.log").startswith(f"no such file: {tmp_path}/gone.log")
