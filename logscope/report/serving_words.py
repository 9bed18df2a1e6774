"""The sentences that say how a launch served."""

from __future__ import annotations

from collections.abc import Sequence

from logscope.reading import shown_name
from logscope.report.serving_view import View, about_text, rate_text, together, width_text
from logscope.serving.summary import Moment, RankSum, summed
from logscope.units import count_text, counted


def headline(view: View) -> str:
    """Say in a sentence or two what was reached, and whether the cache was large enough."""
    speakers = [view.launch.ranks[place] for place in view.speakers] or view.launch.ranks[:1]
    parts = [_throughput(view, speakers), _requests(speakers), _pool(view, speakers), _retractions(view, speakers)]
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts if part)


def _throughput(view: View, speakers: Sequence[RankSum]) -> str:
    typical = [median for own in speakers if (median := own.histogram.median()) is not None]
    if not typical:
        return _prefill_only(speakers)
    lines = counted(sum(own.total.count("gen_count") for own in speakers), "line")
    if len(typical) == 1:
        own = next(own for own in speakers if "gen_throughput" in own.peaks)
        peak = own.peaks["gen_throughput"]
        most = f"{rate_text(peak.value)} at most ({_when(view, peak)})"
        return f"about {about_text(typical[0])} token/s were generated (median of {lines}), {most}"
    each = (
        f"{about_text(min(typical))}..{about_text(max(typical))}" if len(set(typical)) > 1 else about_text(typical[0])
    )
    sums = {bucket: total for bucket in view.launch.buckets if (total := together(view, bucket)) is not None}
    text = f"each of {len(typical)} ranks generated about {each} token/s (medians; {lines} in all)"
    if not sums:
        return text
    best = max(sums, key=lambda bucket: sums[bucket])
    when = f"mean of {width_text(view.launch)} from {view.begin(best)} on"
    return f"{text}, together {rate_text(sums[best])} at most ({when})"


def _prefill_only(speakers: Sequence[RankSum]) -> str:
    total = summed([own.total for own in speakers])
    new, rate = total["new_tokens"], total.cache_hit_rate
    if new is None:
        return "No line tells the throughput"
    cached = f"; {rate:.0%} of the prompt tokens were cached" if rate is not None else ""
    lines = counted(total.count("prefill_lines"), "Prefill line")
    return f"no line tells of generated tokens; {lines}: {count_text(int(new))} prompt tokens computed{cached}"


def _requests(speakers: Sequence[RankSum]) -> str:
    running = [own.peaks["running_reqs"].value for own in speakers if "running_reqs" in own.peaks]
    queued = [own.peaks["queue_reqs"].value for own in speakers if "queue_reqs" in own.peaks]
    parts = []
    if running:
        parts.append(f"{counted(max(running), 'request')} ran")
    if queued:
        parts.append(f"{count_text(int(max(queued)))} waited")
    on = " on one rank" if len(speakers) > 1 else ""
    return f"at most {' and '.join(parts)}{on}" if parts else ""


_POOLS = {
    "token_usage": "token usage",
    "full_token_usage": "full token usage",
    "swa_token_usage": "swa token usage",
    "mamba_usage": "mamba usage",
}


def _pool(view: View, speakers: Sequence[RankSum]) -> str:
    peaks = [(own.peaks[name], name, own.rank) for own in speakers for name in _POOLS if name in own.peaks]
    if not peaks:
        return ""
    peak, name, rank = max(peaks, key=lambda found: (found[0].value, -_order(found[0])))
    who = f"{rank.label}, " if len(speakers) > 1 else ""
    return f"{_POOLS[name]} was {peak.value:.2f} at most ({who}{_when(view, peak)})"


def _retractions(view: View, speakers: Sequence[RankSum]) -> str:
    total = summed([own.total for own in speakers])
    count, requests = total.count("retractions"), total["retracted_reqs"]
    if not count:
        return "no request was retracted"
    found = [(own.first_retraction, own.rank) for own in speakers if own.first_retraction is not None]
    first, rank = min(found, key=lambda pair: _order(pair[0]))
    who = f"{rank.label}, " if len(speakers) > 1 else ""
    times = "once" if count == 1 else f"{count_text(count)} times"
    if len(speakers) > 1:
        times += f", on {len(found)} of {len(speakers)} ranks"
    back = f": {counted(requests, 'request')} put back" if requests is not None else ""
    return f"the KV cache was full {times}, first at {who}{_when(view, first)}, {shown_name(first.file)}:{first.line}{back}"


def _order(moment: Moment) -> float:
    return moment.line if moment.seconds is None else moment.seconds


def _when(view: View, moment: Moment) -> str:
    return f"line {moment.line}" if moment.seconds is None else view.label(moment.seconds)
