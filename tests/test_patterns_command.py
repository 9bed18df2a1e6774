"""``logscope patterns``: check, list, show, try, and gaps, whose output is a pattern file that works."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from conftest import CASES, FIRED_UP, FIXTURES, at, init_lines, load_lines, log
from logscope.events import Recogniser
from logscope.gaps import Gap, find_gaps, gap_pack
from logscope.packcheck import load_checked_packs, message_of
from logscope.packs import Packs

SAMPLE = "[2026-01-05 10:00:00 TP0] Memory pool end. avail mem=11.26 GB"
LONG = "kv arena table of 12.50 GB " + "row " * 300
INVENTED = [
    at("10:00:06", "TP0", "KV arena is carved: 12.50 GB at 0x7f2a00000000 for 1024 tokens"),
    at("10:00:06", "TP1", "KV arena is carved: 12.25 GB at 0x7f2b00001000 for 2048 tokens"),
    at("10:00:07", "TP0", "delta of memory: -0.25 GB, +3 blocks, drift -12 tokens"),
    at("10:00:07", "TP0", r"cache file C:\temp\new 'a b' \"quoted\" holds 7 MiB, don't \d+ it"),
    at("10:00:07", "TP0", "cache says ''' and \"\"\" and 3 GB'"),
    at("10:00:07", "TP0", "speicher für größe 4,5 \u2013 12 GB \u00d7 3 “pool” 测试 7"),
    at("10:00:07", "TP0", "pool sizes [1, 2, 4, 8] bytes, version 1.2.3, 00012 MB\tdone"),
    at("10:00:07", "TP0", "0: pool of 3 GB behind what looks like a prefix"),
    at("10:00:07", "TP0", "path /models/a/b.safetensors takes 1.5 GB of 99999999999999999999999 bytes"),
    at("10:00:07", "TP0", LONG),
    at("10:00:08", "TP0", "Load weight end. 3.25 GB in a wording of tomorrow"),
    "a line without a prefix uses 5 MiB of memory",
    at("10:00:08", "", "nothing of the kind was said here"),
    at("10:00:08", "", "nothing of the kind was said here"),
    "x 1 y 2 z 3 GB",
]


@pytest.fixture(scope="module")
def everything(packs: Packs) -> Recogniser:
    return Recogniser(packs, dense=True)


@pytest.fixture
def run_log(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_text(log(*init_lines(), *load_lines(), *INVENTED, FIRED_UP))
    return path


def patterns(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "logscope", "patterns", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def pack_of(gaps: list[Gap], packs: Packs) -> str:
    return gap_pack(gaps, packs, lambda line: message_of(line, packs.envelope).text)


def gaps_of(recogniser: Recogniser, *lines: str) -> list[Gap]:
    return find_gaps([("run.log", [log(*lines).encode()])], recogniser)


def saved(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    return folder


# -- check, list, show, try ----------------------------------------------------------------------------------------------------


def test_check_counts_what_it_tried() -> None:
    done = patterns("check")
    assert (0, "") == (done.returncode, done.stderr)
    assert "12 pattern files are fine: " in done.stdout
    assert done.stdout.endswith(" samples\n")


def test_check_of_a_folder_with_problems_exits_2_with_all_of_them(tmp_path: Path) -> None:
    folder = saved(tmp_path / "my", '[phase]\nid = "mine"\n\n[[event]]\nid = "mine.a"\n')
    done = patterns("check", folder)
    assert (2, "") == (done.returncode, done.stdout)
    assert f"{folder}/mine.toml:1: there is no phase 'mine'\n  do: " in done.stderr
    assert f"{folder}/mine.toml:4: event 'mine.a' has no [[event.form]]\n  do: " in done.stderr
    assert done.stderr.endswith("2 problems in the pattern files\n")


def test_check_of_a_folder_that_is_missing_exits_2(tmp_path: Path) -> None:
    done = patterns("check", tmp_path / "nowhere")
    assert (2, "") == (done.returncode, done.stdout)
    assert "nowhere: no such folder\n  do: " in done.stderr


def test_list_names_every_event_under_its_phase(packs: Packs) -> None:
    lines = patterns("list").stdout.splitlines()
    assert [f"{phase.id}: {phase.title}" for phase in packs.phases.values()] == [
        line for line in lines if not line.startswith(" ")
    ]
    assert {pattern.id for pattern in packs.patterns} == {line.split()[0] for line in lines if line.startswith(" ")}


def test_show_gives_meaning_values_and_wordings_by_release() -> None:
    done = patterns("show", "load_weights.end")
    assert (0, "") == (done.returncode, done.stderr)
    for text in (
        "load_weights.end  (patterns/load_weights.toml:",
        "means     this rank holds",
        "avail_mem_bytes (GiB",
        "0.5.9 .. before 0.5.10",
    ):
        assert text in done.stdout


@pytest.mark.parametrize(
    ("asked", "suggested"),
    [
        ("load_weights.ende", "load_weights.end"),
        ("kv_cache.alocated", "kv_cache.allocated"),
        ("capacity", "ready.capacity"),
        ("memory_unbalanced", "failure.memory_unbalanced, failure.memory_unbalanced_warning"),
    ],
)
def test_show_of_an_unknown_event_suggests_the_nearest(asked: str, suggested: str) -> None:
    done = patterns("show", asked)
    assert (2, "") == (done.returncode, done.stdout)
    assert f"no event '{asked}'\n  do: did you mean " in done.stderr
    assert suggested in done.stderr


def test_show_of_a_word_like_no_event_points_to_the_list() -> None:
    assert "do: logscope patterns list shows all" in patterns("show", "zzzzz").stderr


def test_try_of_a_known_line_says_what_it_is() -> None:
    done = patterns("try", SAMPLE)
    assert (0, "") == (done.returncode, done.stderr)
    assert "prefix: time 2026-01-05 10:00:00, rank TP0, origin none\n" in done.stdout
    assert "message: Memory pool end. avail mem=11.26 GB\n" in done.stdout
    assert "memory_pool.end: all pools" in done.stdout
    assert "avail_mem=11.26GiB" in done.stdout
    assert "ambiguous" not in done.stdout


def test_try_of_a_near_miss_names_the_events_whose_literal_it_holds() -> None:
    done = patterns("try", "[2026-01-05 10:00:00 TP0] Load weight end. 3 GB, perhaps")
    assert 1 == done.returncode
    assert "not recognised: it holds the literal of these events" in done.stdout
    assert "  load_weights.end (patterns/load_weights.toml:" in done.stdout
    assert "load_weights.begin" not in done.stdout


def test_try_of_anything_else_says_so() -> None:
    done = patterns("try", "the weather is fine")
    assert (1, "not recognised: no literal of any event stands in it\n") == (done.returncode, done.stdout)


# -- gaps ----------------------------------------------------------------------------------------------------------------------


def test_gaps_of_a_log_make_its_lines_known(run_log: Path, tmp_path: Path) -> None:
    """What is printed, saved into a folder, passes the check; with it, the same log has no gaps any more."""
    done = patterns("gaps", run_log, "--all")
    assert 0 == done.returncode, done.stderr
    assert "13 of 13 groups shown" in done.stderr
    assert "1 in an unknown wording of a known event" in done.stderr
    folder = saved(tmp_path / "my", done.stdout)
    assert "left out" not in done.stdout
    checked = patterns("check", folder)
    assert 0 == checked.returncode, checked.stderr
    assert checked.stdout.startswith("13 pattern files are fine")
    again = patterns("gaps", run_log, "--all", "--patterns", folder)
    assert 3 == again.returncode
    assert "no unrecognised line" in again.stderr


def test_lines_that_gaps_made_known_are_events_of_the_timeline(run_log: Path, tmp_path: Path) -> None:
    """They pass the gate, too, which looks at bytes."""
    folder = saved(tmp_path / "my", patterns("gaps", run_log, "--all").stdout)
    command = [sys.executable, "-m", "logscope", "events", str(run_log), "--patterns", str(folder), "-f", "jsonl"]
    rows = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    assert len(INVENTED) == sum('"mine.line_' in row for row in rows)
    assert not any('"drift": true' in row or '"event": null' in row for row in rows)


def test_lines_about_memory_come_first_and_others_only_if_asked_for(everything: Recogniser) -> None:
    gaps = gaps_of(everything, *INVENTED)
    kinds = [gap.is_memory for gap in gaps]
    assert sorted(kinds, reverse=True) == kinds
    assert ["nothing of the kind was said here"] == [gap.text for gap in gaps if not gap.is_memory]
    assert gaps[0].text.startswith("KV arena is carved")


def test_without_a_flag_only_memory_is_shown(run_log: Path) -> None:
    done = patterns("gaps", run_log, "--limit", "3")
    assert 3 == done.stdout.count("[[event]]")
    assert "3 of 12 groups shown, 1 more do not look like memory (--all)" in done.stderr
    assert "nothing of the kind" not in done.stdout


def test_lines_that_differ_in_numbers_paths_and_quoted_texts_are_one_group(everything: Recogniser) -> None:
    gaps = gaps_of(
        everything,
        *(at("10:00:00", f"TP{rank}", f"arena {rank} of -{rank}.5 GB at 0x{rank}f in /tmp/a/{rank} for 'x {rank}'") for rank in range(7)),
        at("10:00:00", "TP0", "arena 1 of 2 GB at 0xaf in /var/b for ''"),
        at("10:00:00", "TP0", "arena of none"),
    )  # fmt: skip
    assert [(8, True), (1, False)] == [(gap.count, gap.is_memory) for gap in gaps]


def test_every_line_of_a_group_becomes_known_not_only_its_first(
    everything: Recogniser, packs: Packs, tmp_path: Path
) -> None:
    lines = [
        at("10:00:00", "TP0", "arena 1 of 2.5 GB in /tmp/a/1, sizes [1, 2], for 'a'"),
        at("10:00:00", "TP1", "arena 22 of -3 GB in /var/b/c-2, sizes [4], for 'b c'"),
    ]
    folder = saved(tmp_path / "my", pack_of(gaps_of(everything, *lines), packs))
    with_mine = Recogniser(load_checked_packs([folder])[0], dense=True)
    assert [] == gaps_of(with_mine, *lines)


def test_groups_of_several_logs_are_counted_together(everything: Recogniser, packs: Packs) -> None:
    blocks = [log(at("10:00:00", "TP0", f"arena of {size} GB")).encode() for size in (1, 2.5)]
    (gap,) = find_gaps([("a.log", blocks[:1]), ("b.log", blocks[1:])], everything)
    assert (2, "a.log:1") == (gap.count, str(gap.pos))
    assert "# 2 lines, the first is a.log:1\n" in pack_of([gap], packs)


def test_names_and_units_are_guessed_from_the_words_around_a_number(everything: Recogniser, packs: Packs) -> None:
    text = "Arena ready. V size: 1.50 GB, elapsed=2.5 s, hit 97 %, 12 tokens, 3 MB, V size: 4 MiB, slots: 7"
    (event,) = tomllib.loads(pack_of(gaps_of(everything, at("10:00:00", "TP0", text)), packs))["event"]
    units = {name: field["unit"] for name, field in event["fields"].items()}
    assert {"v_size": "GiB", "elapsed": "s", "hit": "percent", "v_size_2": "MiB", "slots": "count"} == {
        name: unit for name, unit in units.items() if not name.startswith("value")
    }
    assert ["tokens", "MiB"] == [unit for name, unit in units.items() if name.startswith("value")]
    assert "every rank" == event["said_by"]


def test_a_line_that_is_near_a_known_event_says_which(everything: Recogniser, packs: Packs) -> None:
    text = pack_of(
        gaps_of(everything, at("10:00:00", "TP0", "Load weight end. 3.25 GB in a wording of tomorrow")), packs
    )
    assert "# 1 line, the first is run.log:1, like load_weights.end\n" in text


def test_a_near_miss_of_a_known_wording_does_not_take_its_lines(
    everything: Recogniser, packs: Packs, tmp_path: Path
) -> None:
    """The group's regex leaves numbers open unless a sample of the built-in files would fit it, too."""
    line = at("10:00:00", "TP0", "Load weight begin. avail mem=78 GB,")
    near = at("10:00:00", "TP0", "Capture cuda graph end. Time elapsed: 1-2 s")
    folder = saved(tmp_path / "my", pack_of(gaps_of(everything, line, near), packs))
    mine = load_checked_packs([folder])[0]
    assert [] == gaps_of(Recogniser(mine, dense=True), line, near)


def test_a_line_cut_at_the_end_of_the_log_is_no_gap(everything: Recogniser) -> None:
    cut = f"{at('10:00:00', 'TP0', 'arena of 3 GB')}\n{at('10:00:01', 'TP0', 'Memory pool end. avail m')}"
    assert ["arena of 3 GB"] == [gap.text for gap in find_gaps([("run.log", [cut.encode()])], everything)]


def test_lines_too_short_to_tell_apart_are_named_in_a_comment(
    everything: Recogniser, packs: Packs, tmp_path: Path
) -> None:
    text = pack_of(gaps_of(everything, "3 GB", "arena of 3 GB"), packs)
    assert "# left out, too much like another line or too short: run.log:1" in text
    load_checked_packs([saved(tmp_path / "my", text)])


def test_a_second_file_of_gaps_goes_beside_the_first(everything: Recogniser, packs: Packs, tmp_path: Path) -> None:
    folder = saved(tmp_path / "my", pack_of(gaps_of(everything, "arena of 3 GB"), packs))
    mine = load_checked_packs([folder])[0]
    more = pack_of(gaps_of(Recogniser(mine, dense=True), "arena of 3 GB", "pool of 4 GB"), mine)
    (folder / "more.toml").write_text(more)
    assert {"mine", "mine_2"} <= set(load_checked_packs([folder])[0].phases)


def test_bytes_that_are_no_text_do_not_get_into_the_gate(everything: Recogniser, packs: Packs, tmp_path: Path) -> None:
    data = b"[2026-01-05 10:00:00 TP0] arena \xff\xfe of 3 GB in the pool\x00\n\x1b[31mpool\x1b[0m of 7 GB in red\n"
    folder = saved(tmp_path / "my", pack_of(find_gaps([("run.log", [data])], everything), packs))
    mine = load_checked_packs([folder])[0]
    assert "\ufffd" not in "".join(literal for pattern in mine.patterns for literal in pattern.literals)
    assert [] == find_gaps([("run.log", [data])], Recogniser(mine, dense=True))


def test_gaps_of_a_log_that_is_all_known_exits_3(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(log(*init_lines(), *load_lines()))
    done = patterns("gaps", path)
    assert (3, "") == (done.returncode, done.stdout)
    assert "no unrecognised line in" in done.stderr


@pytest.mark.parametrize("case", CASES)
def test_gaps_of_every_fixture_are_a_pattern_file_that_makes_them_known(
    case: str, everything: Recogniser, packs: Packs, tmp_path: Path
) -> None:
    data = (FIXTURES / case / "launch.log").read_bytes()
    gaps = find_gaps([(case, [data])], everything)
    text = pack_of(gaps, packs)
    tomllib.loads(text)
    mine, _ = load_checked_packs([saved(tmp_path / "my", text)])
    left = find_gaps([(case, [data])], Recogniser(mine, dense=True))
    assert text.count("# left out") == len(left)


def test_there_are_fixtures() -> None:
    assert len(CASES) >= 30
