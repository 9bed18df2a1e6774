"""Frames: one schema, whatever is in them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas
import pytest

from conftest import FIRED_UP, ReadText, at, gb, init_lines, load_lines, log, pool_lines, printed_args, rank_lines
from logscope.frames import SCHEMA, Frames, build_frame, frame_rows
from logscope.model import Launch
from logscope.packs import Packs
from logscope.units import GIB

ROOT = Path(__file__).parent.parent
COMMAND = "+ SGLANG_TEST=1 python3 -m sglang.launch_server --model-path /models/m --tp 2 --trust-remote-code"


@pytest.fixture(scope="module")
def launch(read_text: ReadText) -> Launch:
    args = printed_args(tp_size=2, mem_fraction_static=0.88, cuda_graph_bs=[1, 2], quantization=None)
    odd = at("10:00:55", "TP0", "Memory pool end. nothing is left")
    (found,) = read_text(log(COMMAND, args, *rank_lines(), odd, FIRED_UP))
    return found


@pytest.fixture(scope="module")
def frames(launch: Launch, packs: Packs) -> Frames:
    return Frames([launch], packs)


@pytest.mark.parametrize("name", list(SCHEMA))
def test_columns_and_dtypes_are_those_of_the_schema(name: str, frames: Frames) -> None:
    frame: pandas.DataFrame = getattr(frames, name)
    assert not frame.empty
    assert {column: dtype for column, (dtype, _) in SCHEMA[name].items()} == {
        column: str(dtype) for column, dtype in frame.dtypes.items()
    }


@pytest.mark.parametrize("name", list(SCHEMA))
def test_an_empty_frame_has_all_columns_and_dtypes(name: str, packs: Packs) -> None:
    frame = build_frame(name, [], packs)
    assert 0 == len(frame)
    assert {column: dtype for column, (dtype, _) in SCHEMA[name].items()} == {
        column: str(dtype) for column, dtype in frame.dtypes.items()
    }


@pytest.mark.parametrize("name", list(SCHEMA))
def test_rows_hold_no_column_that_the_schema_does_not_know(name: str, launch: Launch, packs: Packs) -> None:
    rows = frame_rows(name, launch, packs)
    assert rows
    assert [list(SCHEMA[name])] == [list(keys) for keys in {tuple(row) for row in rows}]


def test_every_column_is_described() -> None:
    assert [] == [
        f"{name}.{column}" for name, schema in SCHEMA.items() for column, (_, text) in schema.items() if not text
    ]


def test_the_timeline_frame(frames: Frames) -> None:
    frame = frames.timeline
    end = frame[frame["event"] == "load_weights.end"].iloc[0]
    assert {
        "launch": 1,
        "rank": "TP0",
        "worker": "target",
        "phase": "load_weights",
        "edge": "end",
        "time": "2026-01-05 10:00:20",
        "elapsed_s": 13.5,
        "avail_mem_bytes": gb("21.71"),
        "mem_usage_bytes": gb("72.33"),
        "line": 6,
    } == {
        name: end[name]
        for name in (
            "launch", "rank", "worker", "phase", "edge", "time", "elapsed_s", "avail_mem_bytes", "mem_usage_bytes", "line",
        )
    }  # fmt: skip
    assert end["node"] is pandas.NA
    assert 0.01 * GIB <= end["avail_mem_resolution_bytes"] <= 0.01 * GIB + 1


def test_the_events_frame_holds_events_and_drift(frames: Frames, launch: Launch) -> None:
    frame = frames.events
    assert len(launch.events) + 1 == len(frame)
    drift = frame[frame["drift"].notna()].iloc[0]
    assert ("memory_pool.end", "Memory pool end. nothing is left", 11) == (drift["drift"], drift["text"], drift["line"])
    assert drift["event"] is pandas.NA
    pool = frame[frame["event"] == "kv_cache.allocated"].iloc[0]
    assert {"tokens": 159269, "kv_size_bytes": gb("10.42")} == json.loads(pool["values"])


def test_the_values_frame(frames: Frames) -> None:
    frame = frames.values
    ends = frame[frame["event"] == "load_weights.end"].set_index("field")
    assert 13.5 == ends.loc["elapsed_s", "value"]
    assert ends.loc["elapsed_s", "text"] is pandas.NA
    assert "LlamaForCausalLM" == ends.loc["model_type", "text"]
    assert ends.loc["model_type", "value"] is pandas.NA


def test_the_phases_frame(frames: Frames) -> None:
    frame = frames.phases.set_index("phase")
    load = frame.loc["load_weights"]
    assert (13.5, 0.01, "printed", False) == (
        load["duration_s"], load["duration_resolution_s"], load["duration_from"], load["open"],
    )  # fmt: skip
    assert (gb("94.04"), gb("21.71"), gb("72.33"), "printed") == (
        load["before_bytes"], load["after_bytes"], load["used_bytes"], load["used_from"],
    )  # fmt: skip
    assert (5, 6) == (load["begin_line"], load["end_line"])
    assert "derived" == frame.loc["memory_pool", "used_from"]


def test_an_open_phase_has_no_end(read_text: ReadText, packs: Packs) -> None:
    launches = read_text(log(*init_lines()[:1]))
    row = build_frame("phases", launches, packs).iloc[0]
    assert row["open"]
    assert [True] * 3 == [row[name] is pandas.NA for name in ("end_line", "end_time", "duration_s")]


def test_the_ranks_frame_keeps_what_is_not_printed_unknown(read_text: ReadText, packs: Packs) -> None:
    launches = read_text(log(*init_lines("DP1 TP10")))
    row = build_frame("ranks", launches, packs).iloc[0]
    assert ("DP1 TP10", 1, 10, 2) == (row["rank"], row["dp"], row["tp"], row["events"])
    assert [True] * 5 == [row[name] is pandas.NA for name in ("node", "pp", "ep", "attn_cp", "gpu")]


def test_the_ledger_frame_chains(frames: Frames) -> None:
    frame = frames.ledger
    assert (frame["free_before_bytes"] - frame["bytes"] == frame["free_after_bytes"]).all()
    assert frame["free_before_bytes"].tolist()[1:] == frame["free_after_bytes"].tolist()[:-1]
    assert ["distributed init", "weights", "KV cache", "unexplained", "graphs: decode"] == frame["item"].tolist()


def test_the_args_frame_sets_typed_beside_in_force(frames: Frames) -> None:
    frame = frames.args.set_index("name")
    assert ("2", "2") == (frame.loc["tp_size", "in_force"], frame.loc["tp_size", "typed"])
    assert ("0.88", "[1, 2]", "None") == tuple(
        frame.loc[name, "in_force"] for name in ("mem_fraction_static", "cuda_graph_bs", "quantization")
    )
    assert frame.loc["mem_fraction_static", "typed"] is pandas.NA
    assert "True" == frame.loc["trust_remote_code", "typed"]
    assert (True, "1") == (frame.loc["SGLANG_TEST", "env"], frame.loc["SGLANG_TEST", "typed"])


def test_frames_of_several_launches_stand_in_launch_order(read_text: ReadText, packs: Packs) -> None:
    text = log(printed_args(), *init_lines(), *load_lines(), *pool_lines())
    launches = read_text(text + text.replace("10:0", "11:0"))
    assert [1] * 4 + [2] * 4 == build_frame("phases", launches, packs)["launch"].tolist()


def test_a_frame_is_built_once(frames: Frames) -> None:
    assert frames.phases is frames.phases


@pytest.mark.parametrize("module", ["logscope", "logscope.frames", "logscope.reading"])
def test_importing_does_not_import_pandas(module: str) -> None:
    code = f"import sys, {module}; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "False\n" == done.stdout
