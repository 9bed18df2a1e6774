"""``logscope explain`` as a user runs it: the JSON contract, exit codes, sources, formats, and logs that are cut anywhere."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from conftest import CASES, FIXTURES, ReadText, at, load_lines, log, pool_lines
from logscope.errors import NoLaunchError
from logscope.explainer import Question, explain_launches
from logscope.ledger import ledger_of
from logscope.model import Launch
from logscope.packs import Packs
from logscope.render import find_renderer
from logscope.report.explain import explain_report
from running import logscope

BASELINE = str(FIXTURES / "baseline" / "launch.log")
CAR = str(FIXTURES / "car" / "launch.log")
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "head_dim": 128,
    "torch_dtype": "bfloat16",
}
LATENT_CONFIG = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "num_hidden_layers": 61,
    "num_attention_heads": 64,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "torch_dtype": "bfloat16",
}
NUMBER = (int, float)
POSITION = {"file": str, "line": int}
OFFER = {
    "flags": str,
    "mem_fraction_static": NUMBER,
    "budget_bytes": list,
    "kept_free_bytes": list,
    "tokens": (list, None),
    "fails": bool,
    "in_force": bool,
}
# what the contract promises: name -> type, or types with None
LAUNCH: Mapping[str, object] = {
    "launch": int,
    "source": str,
    "outcome": str,
    "ended": (str, None),
    "cause": (str, None),
    "verdict": str,
    "direction": (str, None),
    "evidence": [POSITION],
    "mem_fraction_static": {
        "typed": (*NUMBER, None),
        "in_force": (*NUMBER, None),
        "implied": (list, None),
        "minimum": (list, None),
        "suggested": (*NUMBER, None),
        "verdict": str,
    },
    "kv": {
        "tokens": (int, None),
        "bytes": (int, None),
        "cell_bytes": (list, None),
        "limiting_rank": (str, None),
        "bound_by": (str, None),
        "budget_bytes": (list, None),
    },
    "budget": [{"term": str, "amount": list, "unit": str, "formula": str, "evidence": [POSITION]}],
    "what_to_set": [OFFER],
    "what_if": [OFFER],
    "ledger": [
        {
            "rank": str,
            "worker": (str, None),
            "phase": str,
            "item": str,
            "bytes": int,
            "resolution_bytes": int,
            "kind": str,
            "from": str,
            "to": str,
        }
    ],
    "findings": [{"id": str, "level": str, "sentence": str, "evidence": [POSITION], "remedy": (str, None)}],
    "releases": {"since": (str, None), "until": (str, None), "empty": bool},
}


def explained(*words: str, stdin: bytes = b"", cwd: Path | None = None) -> list[dict[str, object]]:
    """Return the launches of ``explain -f json``."""
    done = logscope("explain", *words, "-f", "json", stdin=stdin, cwd=cwd)
    assert (0, "") == (done.returncode, done.stderr)
    data = json.loads(done.stdout)
    assert (1, "explain") == (data["schema"], data["command"])
    found: list[dict[str, object]] = data["launches"]
    return found


def data_of(launches: list[Launch], packs: Packs) -> dict[str, object]:
    """Return what ``-f json`` writes of launches, read anew."""
    report = explain_report(explain_launches(launches, packs, Question()))
    found: dict[str, object] = json.loads(find_renderer("json").render(report))
    return found


def text_of(launches: list[Launch], packs: Packs) -> str:
    report = explain_report(explain_launches(launches, packs, Question()))
    return find_renderer("text").render(report).decode()


# -- the contract --------------------------------------------------------------------------------------------------------------


def assert_has_shape(value: object, shape: object, where: str) -> None:
    if isinstance(shape, dict):
        assert isinstance(value, dict), where
        assert list(shape) == list(value), where
        for name, inner in shape.items():
            assert_has_shape(value[name], inner, f"{where}.{name}")
    elif isinstance(shape, list):
        assert isinstance(value, list), where
        for index, each in enumerate(value):
            assert_has_shape(each, shape[0], f"{where}[{index}]")
    else:
        allowed = shape if isinstance(shape, tuple) else (shape,)
        assert (type(value) if value is not None else None) in allowed, (where, value)


@pytest.mark.parametrize("case", CASES)
def test_json_keeps_its_contract(case: str, fixture_launches: dict[str, Launch], packs: Packs) -> None:
    data = data_of([fixture_launches[case]], packs)
    assert ["schema", "command", "launches"] == list(data)
    (launch,) = data["launches"]  # type: ignore[misc]
    assert_has_shape(launch, LAUNCH, case)
    assert launch["outcome"] in ("ready", "failed", "hung", "cut", "running")
    assert launch["direction"] in ("raise", "lower", None)
    assert (launch["cause"] is None) <= (launch["direction"] is None)
    assert {each["level"] for each in launch["findings"]} <= {"error", "warning", "note"}
    assert {row["kind"] for row in launch["ledger"]} <= {"measured", "derived", "unexplained"}
    assert {row["worker"] for row in launch["ledger"]} <= {"target", "draft", None}
    assert launch["kv"]["bound_by"] in ("fraction", "max_total_tokens", "mamba", "swa", "draft", "page", None)
    fraction = launch["mem_fraction_static"]
    for bounds in (fraction["implied"], fraction["minimum"], launch["kv"]["cell_bytes"], launch["kv"]["budget_bytes"]):
        assert bounds is None or (len(bounds) == 2 and bounds[0] <= bounds[1])


@pytest.mark.parametrize("case", CASES)
def test_positions_are_lines_of_the_log(case: str, fixture_launches: dict[str, Launch], packs: Packs) -> None:
    launch = fixture_launches[case]
    count = (FIXTURES / case / "launch.log").read_bytes().count(b"\n") + 1
    (data,) = data_of([launch], packs)["launches"]  # type: ignore[misc]
    parts = (data, *data["findings"], *data["budget"])
    places = [place for part in parts for place in part["evidence"]]
    assert places
    assert {launch.source} == {place["file"] for place in places}
    assert all(1 <= place["line"] <= count for place in places)


@pytest.mark.parametrize("case", CASES)
def test_rows_of_the_ledger_add_up_in_json(case: str, fixture_launches: dict[str, Launch], packs: Packs) -> None:
    launch = fixture_launches[case]
    (data,) = data_of([launch], packs)["launches"]  # type: ignore[misc]
    rows: dict[str, int] = {}
    for row in data["ledger"]:
        rows[row["rank"]] = rows.get(row["rank"], 0) + row["bytes"]
    free = {row.rank.tag: row.free_after for row in ledger_of(launch, packs)}
    begin: dict[str, int] = {}
    for row in ledger_of(launch, packs):
        begin.setdefault(row.rank.tag, row.free_before)
    assert {tag: begin[tag] - free[tag] for tag in free} == rows


def test_the_story_in_json() -> None:
    (launch,) = explained(CAR)
    assert ("failed", None, "not_enough_memory", "raise") == tuple(
        launch[name] for name in ("outcome", "ended", "cause", "direction")
    )
    assert {
        "typed": 0.55,
        "in_force": 0.55,
        "implied": None,
        "minimum": [0.769157, 0.769289],  # 1 - 21.705 / 94.025 and 1 - 21.695 / 94.035, rounded outwards
        "suggested": 0.81,
        "verdict": "unknown",
    } == launch["mem_fraction_static"]
    kv = launch["kv"]
    assert isinstance(kv, dict)
    assert (None, None, None, "TP0", None) == tuple(
        kv[name] for name in ("tokens", "bytes", "cell_bytes", "limiting_rank", "bound_by")
    )
    # 21.695 - 42.31575 and 21.705 - 42.31125
    assert pytest.approx([-20.62075 * 2**30, -20.60625 * 2**30], abs=2**20) == kv["budget_bytes"]
    assert {"file": CAR, "line": 49} == launch["evidence"][0]  # type: ignore[index]


def test_a_launch_that_works_has_its_numbers_in_json() -> None:
    (launch,) = explained(BASELINE)
    assert ("ready", None, None) == tuple(launch[name] for name in ("outcome", "cause", "direction"))
    assert {
        "typed": 0.88,
        "in_force": 0.88,
        "implied": [0.879831, 0.880058],
        "minimum": [0.769075, 0.769207],
        "suggested": None,
        "verdict": "meets",
    } == launch["mem_fraction_static"]
    kv = launch["kv"]
    assert isinstance(kv, dict)
    assert (159269, [70214, 70282], "TP0", "fraction") == tuple(
        kv[name] for name in ("tokens", "cell_bytes", "limiting_rank", "bound_by")
    )
    assert pytest.approx(10.42 * 2**30, abs=1) == kv["bytes"]


def test_a_floor_is_not_shown_as_implied(fixture_launches: dict[str, Launch], packs: Packs) -> None:
    (launch,) = data_of([fixture_launches["0.5.23-kill9-scheduler"]], packs)["launches"]  # type: ignore[misc]
    assert (None, "max_total_tokens") == (launch["mem_fraction_static"]["implied"], launch["kv"]["bound_by"])


# -- hints, claims, what-ifs ---------------------------------------------------------------------------------------------------


def tokens_for(fraction: float, launch: dict[str, object]) -> list[int] | None:
    offers = launch["what_to_set"]
    assert isinstance(offers, list)
    (tokens,) = [offer["tokens"] for offer in offers if offer["mem_fraction_static"] == fraction]
    found: list[int] | None = tokens
    return found


def test_bytes_per_token_come_from_a_number_another_log_or_a_configuration(tmp_path: Path) -> None:
    """0.80 leaves 2.888..2.900 GiB: 44,128..44,311 tokens of 70,272 bytes; the other log says 70,214.2..70,281.7."""
    assert tokens_for(0.8, explained(CAR)[0]) is None
    assert [44128, 44311] == tokens_for(0.8, explained(CAR, "--cell-bytes", "70272")[0])
    by_log = tokens_for(0.8, explained(CAR, "--like", BASELINE)[0])
    assert by_log is not None
    assert pytest.approx([2.888 * 2**30 / 70281.65, 2.9 * 2**30 / 70214.23], abs=2) == by_log
    # 61 layers of 512 + 64 values of 2 bytes
    (tmp_path / "config.json").write_text(json.dumps(LATENT_CONFIG))
    by_config = explained(CAR, "--model-config", "config.json", cwd=tmp_path)[0]
    assert [44128, 44311] == tokens_for(0.8, by_config)
    kv = by_config["kv"]
    assert isinstance(kv, dict)
    assert [70272, 70272] == kv["cell_bytes"]


def test_a_source_of_another_model_gives_no_tokens_but_a_warning(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (launch,) = explained(CAR, "--model-config", "config.json", cwd=tmp_path)
    assert tokens_for(0.8, launch) is None
    findings = launch["findings"]
    assert isinstance(findings, list)
    assert ("hint_refused", "warning") == (findings[0]["id"], findings[0]["level"])
    assert (
        "--model-config config.json does not fit this launch, and its 16,384 bytes per token are not used: architecture "
        "DeepseekV3ForCausalLM here, LlamaForCausalLM there."
    ) == findings[0]["sentence"]


def test_without_bytes_per_token_the_text_says_where_they_may_come_from() -> None:
    text = " ".join(logscope("explain", CAR).stdout.split())
    assert (
        "Tokens: no bytes per token in this log; --cell-bytes N, --like OTHER.log or --model-config config.json give them."
    ) in text
    assert "Tokens: no bytes per token" not in logscope("explain", CAR, "--cell-bytes", "70272").stdout


def test_a_claim_is_the_first_sentence() -> None:
    log = str(FIXTURES / "baseline_grep" / "launch.log")
    first = " ".join(logscope("explain", log, "--claim", "--mem-fraction-static=0.55").stdout.split())
    assert first.startswith(
        f"{log}: mem_fraction_static 0.55 is not what ran: the pool implies 0.8798..0.8801; with 0.55 the budget would be "
        "-20.61 GiB per rank (line "
    )


def test_what_ifs_stand_in_a_table_of_their_own() -> None:
    """0.85: 21.71 - 94.04 * 0.15 = 7.60 GiB; a cap of 20,000 tokens is what it says."""
    words = ("--what-if", "mem_fraction_static=0.85", "--what-if", "max_total_tokens=20000")
    (launch,) = explained(BASELINE, *words)
    answers = launch["what_if"]
    assert isinstance(answers, list)
    assert [
        "mem_fraction_static=0.85",
        "max_total_tokens=20000",
        "mem_fraction_static=0.85 max_total_tokens=20000",
    ] == [each["flags"] for each in answers]
    assert [0.85, 0.88, 0.85] == [each["mem_fraction_static"] for each in answers]
    assert [[20000, 20000]] * 2 == [each["tokens"] for each in answers[1:]]
    rows = [line.split() for line in logscope("explain", BASELINE, *words).stdout.splitlines()]
    assert ["mem_fraction_static=0.85", "7.60", "GiB", "about", "116,000", "14.11", "GiB"] in rows
    # 21.71 - 20,000 * 70,248 bytes
    assert ["all", "together", "7.60", "GiB", "20,000", "20.40", "GiB", "capped"] in rows


def test_a_number_of_a_what_if_is_not_broken_in_two() -> None:
    """Broken behind its sixth digit, 1000000 reads as 100000."""
    text = logscope("explain", BASELINE, "--what-if", "max_total_tokens=1000000").stdout
    assert "max_total_tokens=1000000 " in text
    assert max(map(len, text.splitlines())) <= 80


def test_no_tokens_are_none_and_not_less_than_none() -> None:
    text = logscope("explain", CAR, "--cell-bytes", "70272", "--what-if", "kv_cache_dtype=fp8_e5m2").stdout
    (row,) = [line.split() for line in text.splitlines() if line.startswith("kv_cache_dtype")]
    assert ["kv_cache_dtype=fp8_e5m2", "-20.61", "GiB", "none", "42.31", "GiB", "fails"] == row
    assert "about -" not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--what-if", "tp_size=4"), "no what-if for 'tp_size': its effect is not modelled"),
        (("--what-if", "mem_fraction_static=2"), "mem_fraction_static=2 is no fraction"),
        (("--what-if", "0.85"), "--what-if 0.85: no NAME=VALUE"),
        (("--what-if", "page_size=1", "--what-if", "page_size=2"), "--what-if has page_size twice"),
        (("--claim", "mem_fraction_static"), "--claim mem_fraction_static: no NAME=VALUE"),
        (("--claim", "mem_fraction_static=nan"), "mem_fraction_static=nan is no fraction"),
        (("--claim", "mem_fraction_static=inf"), "mem_fraction_static=inf is no fraction"),
        (("--claim", "mem_fraction_static=1.5"), "mem_fraction_static=1.5 is no fraction"),
        (("--claim", "mem-fraction-static=-1"), "mem_fraction_static=-1 is no fraction"),
        (("--cell-bytes", "inf"), "--cell-bytes inf is no number of bytes"),
        (("--claim", "=0.5"), "--claim =0.5: no NAME=VALUE"),
        (("--cell-bytes", "70272", "--like", BASELINE), "--cell-bytes and --like both give bytes per token"),
        (("--like", CAR), f"{CAR} has no pool line with tokens and size"),
        (("--model-config", "nowhere.json"), "nowhere.json cannot be read: "),
        (("--model-config", "odd.json"), "odd.json: not modelled: "),
        (("--launch", "2"), "no launch '2': there is 1 launch"),
        (("-f", "xml"), "unknown format 'xml'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_usage_exits_2_with_one_message(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text(json.dumps({**CONFIG, "architectures": ["DeepseekV4ForCausalLM"]}))
    done = logscope("explain", CAR, *words, cwd=tmp_path)
    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith(f"logscope: {message}"), done.stderr
    assert "Traceback" not in done.stderr
    assert "\n  do: " in done.stderr


@pytest.mark.parametrize(
    ("content", "why"), [("{", "not JSON"), ("[]", "no object"), ("{}", "without architectures"), ('"x"', "no object")]
)
def test_a_configuration_that_is_none_is_refused(content: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    done = logscope("explain", CAR, "--model-config", "config.json", cwd=tmp_path)
    assert (2, "") == (done.returncode, done.stdout)
    assert "config.json" in done.stderr and "Traceback" not in done.stderr, why


def test_a_cell_of_no_bytes_is_refused() -> None:
    assert 2 == logscope("explain", CAR, "--cell-bytes", "0").returncode


def test_a_log_to_compare_with_that_is_not_there_is_refused_like_any_log(tmp_path: Path) -> None:
    done = logscope("explain", CAR, "--like", "nowhere.log", cwd=tmp_path)
    assert 3 == done.returncode
    assert done.stderr.startswith("logscope: no such file: nowhere.log\n")


# -- exit codes ----------------------------------------------------------------------------------------------------------------


def test_a_part_of_a_log_without_figures_cannot_be_judged(tmp_path: Path) -> None:
    (tmp_path / "part.log").write_text(log(*load_lines()))
    done = logscope("explain", "part.log", cwd=tmp_path)
    assert (3, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith("part.log: the log shows only a part of the launch")


@pytest.mark.parametrize("content", [b"", b"hello\nworld\n", bytes(range(256)) * 8], ids=["empty", "foreign", "binary"])
def test_a_log_without_a_launch_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(content)
    done = logscope("explain", "x.log", cwd=tmp_path)
    assert (3, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("logscope: no SGLang launch in x.log: ")


WRAPPERS = [
    ("docker", lambda line: {"log": f"{line}\n", "stream": "stderr", "time": "2026-01-05T10:00:00Z"}, "jq -j .log"),
    ("loki", lambda line: {"labels": {"pod": "p"}, "line": line, "timestamp": "2026-01-05T10:00:00Z"}, "jq -r .line"),
    ("fluent", lambda line: {"kubernetes": {}, "message": line}, "jq -r .message"),
]


@pytest.mark.parametrize(("name", "wrap", "command"), WRAPPERS, ids=[each[0] for each in WRAPPERS])
def test_a_log_wrapped_in_json_is_refused_with_how_to_unwrap_it(
    name: str, wrap: Callable[[str], dict[str, object]], command: str, tmp_path: Path
) -> None:
    """Half of its lines would be read: arguments, but no memory. A cut last line does not hide the wrapper."""
    wrapped = tmp_path / f"{name}.log"
    wrapped.write_text("\n".join(json.dumps(wrap(line)) for line in Path(CAR).read_text().splitlines())[:-9])
    done = logscope("explain", str(wrapped))
    key = command.partition(" .")[2]
    assert (3, "") == (done.returncode, done.stdout)
    assert (
        f"logscope: {wrapped} is wrapped in JSON: each line is an object, with the message in '{key}'\n"
        f"  do: unwrap it first, {command} {wrapped} > plain.log\n"
    ) == done.stderr


def test_json_of_a_server_that_serves_is_no_wrapper(tmp_path: Path) -> None:
    text = Path(BASELINE).read_text() + '{"timestamp": "t", "event": "request.received", "rid": "1"}\n' * 30
    (tmp_path / "run.log").write_text(text)
    done = logscope("explain", str(tmp_path / "run.log"))
    assert 0 == done.returncode
    assert "ready after 10 min 12 s" in " ".join(done.stdout.split())


def test_one_launch_that_can_be_judged_is_enough(tmp_path: Path) -> None:
    (tmp_path / "part.log").write_text(log(*load_lines()))
    assert 0 == logscope("explain", "part.log", CAR, cwd=tmp_path).returncode


# -- sources, launches, formats --------------------------------------------------------------------------------------------------


def test_one_pasted_line_is_enough() -> None:
    line = b"KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB"
    for stdin in (line, line + b"\n"):
        done = logscope("explain", "-", stdin=stdin)
        assert (0, "") == (done.returncode, done.stderr)
        assert (
            "standard input: 16.46 GiB of KV cache (keys and values together) for 367,404 tokens, 48,075..48,134 bytes per token; "
            "the log shows only this part of the launch."
        ) == " ".join(done.stdout.split("\n\n", 1)[0].split())
    kv = explained("-", stdin=line)[0]["kv"]
    assert isinstance(kv, dict)
    assert (367404, [48075, 48134]) == (kv["tokens"], kv["cell_bytes"])


def test_a_compressed_log_is_explained_alike(tmp_path: Path) -> None:
    name = "launch.log.gz"
    (tmp_path / name).write_bytes(gzip.compress(Path(CAR).read_bytes()))
    plain = explained("launch.log", cwd=Path(CAR).parent)
    packed = json.loads(json.dumps(explained(name, cwd=tmp_path)).replace(name, "launch.log"))
    assert plain == packed


def test_launches_are_numbered_and_one_can_be_chosen(tmp_path: Path) -> None:
    (tmp_path / "both.log").write_bytes(Path(BASELINE).read_bytes() + Path(CAR).read_bytes())
    lines = logscope("explain", "both.log", cwd=tmp_path).stdout.splitlines()
    assert lines[0].startswith("[1] both.log: ready after 10 min 12 s")
    assert [line for line in lines if line.startswith("[2] both.log: failed after 9 min 42 s")]
    assert [1, 2] == [launch["launch"] for launch in explained("both.log", cwd=tmp_path)]
    for choice in ("last", "2"):
        (launch,) = explained("both.log", "--launch", choice, cwd=tmp_path)
        assert (2, "not_enough_memory") == (launch["launch"], launch["cause"])
    chosen = logscope("explain", "both.log", "--launch", "1", cwd=tmp_path).stdout
    assert chosen.startswith("both.log: ready after 10 min 12 s")


def test_findings_are_rows_of_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(logscope("explain", CAR, "-f", "csv").stdout)))
    assert ["launch", "id", "level", "sentence", "remedy", "file", "line"] == list(rows[0])
    assert [each["id"] for each in explained(CAR)[0]["findings"]] == [row["id"] for row in rows]  # type: ignore[attr-defined]
    (row,) = [row for row in rows if row["id"] == "distributed_init_bounded"]
    assert ("1", "note", CAR, "12", "") == (row["launch"], row["level"], row["file"], row["line"], row["remedy"])


def test_markdown_begins_with_the_verdict_and_has_tables() -> None:
    text = logscope("explain", "launch.log", "-f", "markdown", cwd=Path(CAR).parent).stdout
    assert text.startswith("**launch.log: failed after 9 min 42 s: not enough memory for the KV cache: ")
    assert "| **budget: A - kept** | **-20.61 GiB** | **21.70 - 42.31** |" in " ".join(text.split())


def test_files_are_written_in_every_format_and_not_overwritten(tmp_path: Path) -> None:
    names = ("a.json", "b.md", "c.csv", "d.txt")
    words = [word for name in names for word in ("-o", name)]
    done = logscope("explain", CAR, *words, cwd=tmp_path)
    assert (0, "") == (done.returncode, done.stdout)
    assert "".join(f"logscope: wrote {name}\n" for name in names) == done.stderr
    assert logscope("explain", CAR).stdout == (tmp_path / "d.txt").read_text(encoding="utf-8")
    again = logscope("explain", CAR, "-o", "a.json", cwd=tmp_path)
    assert (2, "logscope: a.json exists\n  do: add --force to overwrite it\n") == (again.returncode, again.stderr)


def test_a_timeline_may_follow() -> None:
    done = logscope("explain", CAR, "--timeline")
    alone = logscope("explain", CAR).stdout.partition("\n\nWhere the memory of TP0 went")[0]
    assert done.stdout.startswith(f"{alone}\n\n")
    assert 1 == done.stdout.count("Where the memory of TP0 went")
    assert done.stdout.endswith(logscope("timeline", CAR).stdout.split("\n\n", 1)[1])
    data = json.loads(logscope("explain", CAR, "--timeline", "-f", "json").stdout)
    assert json.loads(logscope("timeline", CAR, "-f", "json").stdout)["launches"] == data["timeline"]


# -- text ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_text_fits_eighty_columns_and_has_no_trailing_blanks(
    case: str, fixture_launches: dict[str, Launch], packs: Packs
) -> None:
    lines = text_of([fixture_launches[case]], packs).splitlines()
    shown = [line for line in lines if str(FIXTURES) not in line]  # the name of the file is as long as it is
    assert [] == [line for line in shown if len(line) > 80]
    assert [] == [line for line in lines if line != line.rstrip()]
    assert [] == [line for line in lines if "None" in line or "nan" in line.split()]


# -- logs that are cut -------------------------------------------------------------------------------------------------------------

CUT = ("baseline", "0.5.14-new-eagle-tp2", "0.5.23-kill9-scheduler", "0.5.9-fakecuda-graph-oom", "0.5.23-unknown-flag")


def cuts(case: str) -> list[bytes]:
    lines = (FIXTURES / case / "launch.log").read_bytes().splitlines(keepends=True)
    heads = [b"".join(lines[:count]) for count in range(50, len(lines) + 50, 50)]
    inside = [head[: -len(head.splitlines()[-1]) // 2] for head in heads]
    tails = [b"".join(lines[count:]) for count in range(0, len(lines), 50)]
    return [text for text in (*heads, *inside, *tails) if text]


@pytest.mark.parametrize("case", CUT)
def test_a_log_cut_anywhere_is_explained_or_refused(case: str, read_text: ReadText, packs: Packs) -> None:
    explained_cuts = 0
    for text in cuts(case):
        try:
            launches = read_text(text)
        except NoLaunchError:
            continue
        (first, *_) = launches_data = data_of(launches, packs)["launches"]  # type: ignore[misc]
        assert_has_shape(first, LAUNCH, case)
        assert text_of(launches, packs).strip()
        explained_cuts += len(launches_data)
    assert 2 <= explained_cuts


@pytest.mark.parametrize("tokens", [0, -561981])
def test_a_pool_of_no_tokens_is_no_reason_for_a_traceback(tokens: int, read_text: ReadText, packs: Packs) -> None:
    pool = at("10:00:21", "TP0", f"KV Cache is allocated. #tokens: {tokens}, KV size: 0.00 GB")
    launches = read_text(log(*load_lines(), pool, pool_lines()[1]))
    (launch,) = data_of(launches, packs)["launches"]  # type: ignore[misc]
    assert_has_shape(launch, LAUNCH, "run.log")


def test_a_log_that_shows_pools_of_the_draft_only_is_explained(read_text: ReadText, packs: Packs) -> None:
    said = "Post-capture KV sizing: draft KV cache allocated. dtype: torch.bfloat16, #tokens: 172032, KV size: 0.66 GB"
    launches = read_text(log(at("10:01:02", "TP0", said), at("10:01:03", "TP0", said)))
    assert {"draft"} == set(launches[0].workers)
    (launch,) = data_of(launches, packs)["launches"]  # type: ignore[misc]
    assert (None, None) == (launch["kv"]["bytes"], launch["kv"]["bound_by"])


def test_a_log_that_no_release_prints_as_a_whole_is_explained(read_text: ReadText, packs: Packs) -> None:
    """Lines of 0.5.9 and of 0.5.13 on together: the range of releases is empty."""
    pool = at("10:00:21", "TP0", "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 159269, KV size: 10.42 GB")
    launches = read_text(log(*load_lines(), pool, pool_lines()[1]))
    assert launches[0].releases.empty
    (launch,) = data_of(launches, packs)["launches"]  # type: ignore[misc]
    assert [70214, 70282] == launch["kv"]["cell_bytes"]


@pytest.mark.parametrize(
    "damaged", ["page_size=1e309", "tp_size=1e309", "tp_size=1000000000", "pp_size=1e309", "nnodes=999999999999"]
)
@pytest.mark.parametrize("command", [["explain"], ["diff", str(FIXTURES / "baseline" / "launch.log")]])
def test_damaged_sizes_neither_hang_nor_give_a_traceback(tmp_path: Path, command: list[str], damaged: str) -> None:
    name = damaged.partition("=")[0]
    text = re.sub(rf"\b{name}=[^,)]*", damaged, (FIXTURES / "car" / "launch.log").read_text(encoding="utf-8"))
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8")
    done = logscope(*command, str(path))
    assert (0, "") == (done.returncode, done.stderr)
    assert "not enough memory for the KV cache" in " ".join(done.stdout.split())
