"""The serving report for programs: JSON and flat rows, base units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from logscope.frames import FLOAT, INT, TEXT, Row, Schema
from logscope.serving import DATED_FROM_S, Serving
from logscope.serving.summary import Cell, LaunchSum, Moment, RankSum

JSON_SCHEMA = 1

FIGURES: Schema = {
    "decode_lines": (INT, "Decode lines"),
    "prefill_lines": (INT, "Prefill lines"),
    "gen_throughput_mean": (FLOAT, "generated token/s, mean of the Decode lines"),
    "gen_throughput_least": (FLOAT, "the least of them"),
    "gen_throughput_most": (FLOAT, "the most of them"),
    "running_reqs_most": (INT, "most requests running"),
    "queue_reqs_most": (INT, "most requests waiting"),
    "token_usage_most": (FLOAT, "most of the KV cache in use, a share"),
    "full_token_usage_most": (FLOAT, "the same of the layers with full attention"),
    "swa_token_usage_most": (FLOAT, "the same of the layers with sliding windows"),
    "mamba_usage_most": (FLOAT, "the same of the states of Mamba layers"),
    "accept_len_mean": (FLOAT, "tokens accepted per step of speculative decoding, mean of the Decode lines"),
    "new_tokens": (INT, "prompt tokens computed"),
    "cached_tokens": (INT, "prompt tokens found in the prefix cache"),
    "cache_hit_rate": (FLOAT, "cached / (computed + cached), a share"),
    "input_throughput_most": (FLOAT, "most prompt token/s of a Prefill line"),
    "retractions": (INT, "how often the KV cache was full, and requests were put back"),
    "retracted_reqs": (INT, "requests that were put back"),
}
RECORDS: Schema = {
    "launch": (INT, "number of the launch, from 1"),
    "node": (INT, "node rank, where server_args tell it"),
    "rank": (TEXT, "tag as printed; empty for the single rank that prints none"),
    "begin": (TEXT, "when the bucket begins, as the log prints time; missing where it prints none"),
    "begin_line": (INT, "where the bucket begins, where the log prints no time"),
    "width": (FLOAT, "of the bucket: seconds, or lines where the log prints no time"),
    **FIGURES,
}


def figures_of(cell: Cell) -> Row:
    """Return the figures of a cell under their public names."""
    whole = {"running_reqs_most": "running_most", "queue_reqs_most": "queue_most", "new_tokens": "new_tokens"}
    whole |= {"cached_tokens": "cached_tokens", "retracted_reqs": "retracted_reqs"}
    shares = ("token_usage_most", "full_token_usage_most", "swa_token_usage_most", "mamba_usage_most")
    found: Row = {name: cell.count(name) for name in ("decode_lines", "prefill_lines", "retractions")}
    found |= {name: None if (value := cell[own]) is None else int(value) for name, own in whole.items()}
    found |= {name: cell[name] for name in shares}
    found |= {
        "gen_throughput_mean": cell.gen_mean,
        "gen_throughput_least": cell["gen_least"],
        "gen_throughput_most": cell["gen_most"],
        "accept_len_mean": cell.accept_mean,
        "cache_hit_rate": cell.cache_hit_rate,
        "input_throughput_most": cell["input_most"],
    }
    return {name: found[name] for name in FIGURES}


def serving_rows(launch: LaunchSum, ranks: Sequence[int]) -> Iterator[Row]:
    """Yield one row per bucket and rank that has lines in it."""
    for bucket in launch.buckets:
        for place in ranks:
            cell = launch.cells.get((bucket, place))
            if cell is not None:
                rank = launch.ranks[place].rank
                where: Row = {"launch": launch.number, "node": rank.node, "rank": rank.tag}
                yield where | _begin(launch, bucket) | figures_of(cell)


def _begin(launch: LaunchSum, bucket: int) -> Row:
    is_time = launch.axis == "time"
    return {
        "begin": _stamp(bucket * launch.width) if is_time else None,
        "begin_line": None if is_time else int(bucket * launch.width),
        "width": float(launch.width),
    }


def serving_data(views: Sequence[tuple[LaunchSum, Sequence[int], str]], serving: Serving) -> Mapping[str, object]:
    """Return the report for JSON."""
    return {
        "schema": JSON_SCHEMA,
        "command": "serving",
        "launches": [
            {
                "launch": launch.number,
                "headline": headline,
                "files": [
                    {"file": file, "first_line": first, "last_line": last}
                    for file, (first, last) in launch.lines.items()
                ],
                "axis": launch.axis,
                "width": float(launch.width),
                "lines_without_clock": launch.unplaced,
                "ranks": [_rank(launch.ranks[place]) for place in ranks],
                "buckets": list(serving_rows(launch, ranks)),
            }
            for launch, ranks, headline in views
        ],
        "not_read": [
            {
                "name": name,
                "lines": count,
                "first": serving.unread.first[name][0],
                "at": str(serving.unread.first[name][1]),
            }
            for name, count in serving.unread.counts.items()
        ],
        "drift": {
            "lines": serving.drifted,
            "first": [{"file": drift.pos.file, "line": drift.pos.line, "text": drift.text} for drift in serving.drift],
        },
    }


def _rank(own: RankSum) -> Mapping[str, object]:
    return {
        "node": own.rank.node,
        "rank": own.rank.tag,
        "gen_throughput_median": own.histogram.median(),
        **figures_of(own.total),
        "peaks": {name: _moment(moment) for name, moment in own.peaks.items()},
        "first_retraction": None if own.first_retraction is None else _moment(own.first_retraction),
    }


def _moment(moment: Moment) -> Mapping[str, object]:
    return {
        "value": moment.value,
        "file": moment.file,
        "line": moment.line,
        "time": None if moment.seconds is None else _stamp(moment.seconds),
    }


def _stamp(seconds: float) -> str:
    """Write a time as logs print it; without a date where the log prints none."""
    when = datetime.fromtimestamp(seconds, UTC)
    return f"{when:%Y-%m-%d %H:%M:%S}" if seconds >= DATED_FROM_S else f"{when:%H:%M:%S}"
