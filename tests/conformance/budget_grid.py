"""The inputs on which logscope's budget and SGLang's functions are compared."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from logscope.budget import (
    Heads,
    KvModel,
    Latent,
    Launch,
    LaunchFlags,
    Speculation,
    States,
    Vision,
    Window,
    exact,
    since,
)
from logscope.units import GIB

from .budget_stand_ins import Flags

MEMORY = ((21.708, 94.037), (3.64, 22.46), (70.25, 139.5), (40.0, 79.0), (5.125, 23.5))
FRACTIONS = (0.55, 0.8, 0.848, 0.88, 0.9)
GQA = Heads(8, 128)
DEEPSEEK, V32 = Latent(512, 64), Latent(512, 64, 128)


@dataclass(frozen=True, slots=True)
class Case:
    """One launch, and the group it belongs to in the report."""

    group: str
    launch: Launch
    flags: Flags


def launch_of(avail: float, total: float, model: KvModel) -> Launch:
    """Return a launch whose memory is known exactly, in GiB."""
    return Launch(exact(avail * GIB), exact(total * GIB), model)


def budget_cases(release: str) -> Iterator[Case]:
    """Yield the grid of a release: what did not exist in it is left out."""
    for (avail, total), fraction in itertools.product(MEMORY, FRACTIONS):
        for group, model, dtype in _models(release):
            for page, cap in ((1, None), (64, None), (16, 100_000), (1, 1_000)):
                launch = replace(launch_of(avail, total, model), page_size=page, max_total_tokens=cap)
                yield Case(group, launch, Flags(fraction, dtype))
        yield from _multimodal(avail, total, fraction, release)
        yield from _speculative(avail, total, fraction, release)
        yield from _windowed(avail, total, fraction, release)
        yield from _hybrid(avail, total, fraction, release)


def _models(release: str) -> Iterator[tuple[str, KvModel, str]]:
    yield "heads", KvModel(GQA, 32), "bfloat16"
    yield "heads", KvModel(GQA, 80, attention_tp=4), "bfloat16"
    if since(release, "0.1.18"):
        yield "heads replicated", KvModel(Heads(2, 64), 28, attention_tp=8), "bfloat16"
    yield "heads, narrow values", KvModel(Heads(8, 192, 128), 48, attention_tp=2), "bfloat16"
    if since(release, "0.2.15"):
        yield "heads, fp8", KvModel(GQA, 32, 1), "float8_e5m2"
    if since(release, "0.2.10"):
        yield "MLA", KvModel(DEEPSEEK, 61, attention_tp=8), "bfloat16"
        yield "MLA", KvModel(DEEPSEEK, 27), "bfloat16"
    if since(release, "0.5.3.post1"):
        yield "DSA", KvModel(V32, 61, attention_tp=8), "bfloat16"
        yield "DSA, fp8", KvModel(replace(V32, scaled_fp8=True), 61, 1), "float8_e4m3fn"
    if since(release, "0.5.18"):
        yield "DSA, indexers left out", KvModel(replace(V32, index_layers=21), 61), "bfloat16"
    if since(release, "0.5.4.post3"):
        yield "MLA, fp4", KvModel(DEEPSEEK, 61, 1, fp4=True), "float4_e2m1fn_x2"
    if since(release, "0.5.5.post3"):
        yield "heads, fp4", KvModel(GQA, 33, 1, fp4=True), "float4_e2m1fn_x2"


def _multimodal(avail: float, total: float, fraction: float, release: str) -> Iterator[Case]:
    if since(release, "0.5.18"):
        launch = replace(launch_of(avail, total, KvModel(GQA, 36)), multimodal=exact(1.0 * GIB))
        yield Case("multimodal reserve", launch, Flags(fraction))


def _speculative(avail: float, total: float, fraction: float, release: str) -> Iterator[Case]:
    if not since(release, "0.4.1.post4"):
        return
    for attention, layers in ((DEEPSEEK, 61), (GQA, 32), (V32, 61)):
        if attention is V32 and not since(release, "0.5.3.post1"):
            continue
        for steps, requests, page, drafts in ((3, 48, 1, 1), (5, None, 64, 2), (1, 8, 1, 0)):
            speculation = Speculation(steps, 1 if page == 64 else 4, steps + 1)
            model = KvModel(attention, layers, draft_layers=drafts)
            launch = replace(
                launch_of(avail, total, model),
                speculation=speculation,
                page_size=page,
                max_running_requests=requests,
                context_length=32768,
            )
            yield Case("speculation", launch, Flags(fraction, algorithm="EAGLE"))
            yield Case("speculation", replace(launch, max_total_tokens=50_000), Flags(fraction, algorithm="EAGLE"))


def _windowed(avail: float, total: float, fraction: float, release: str) -> Iterator[Case]:
    if not since(release, "0.4.9.post3"):
        return
    shapes = [(6, Window(18, GQA)), (1, Window(39, GQA))]
    if since(release, "0.5.9"):
        shapes += [(9, Window(39, Heads(4, 192, 128))), (0, Window(28, GQA))]
    for (layers, window), ratio, page, cap in itertools.product(shapes, (0.8, 0.1, 1.0), (1, 64), (None, 60_000)):
        model = KvModel(GQA, layers, attention_tp=2, window=window)
        launch = launch_of(avail, total, model)
        launch = replace(launch, window_ratio=ratio, page_size=page, max_total_tokens=cap)
        yield Case("sliding window", launch, Flags(fraction))
        if since(release, "0.5.14") and cap is None:
            drafted = replace(launch, model=replace(model, draft_layers=1))
            yield Case("sliding window, draft", drafted, Flags(fraction, algorithm="EAGLE"))


def _hybrid(avail: float, total: float, fraction: float, release: str) -> Iterator[Case]:
    if not since(release, "0.5.2"):
        return
    model = KvModel(GQA, 12, attention_tp=4)
    counted = [States(20_000_000, count=100), States(20_000_000, count=256, dp_size=2)]
    if since(release, "0.5.3.post2"):
        counted += [
            States(20_000_000),
            States(33_333_333, ratio=0.2, dp_size=2),
            States(20_000_000, radix_cache=False, max_running_requests=64, slots_per_request=1),
            States(20_000_000, radix_cache=False, slots_per_request=1),
        ]
    for states in counted:
        yield Case("states", replace(launch_of(avail, total, model), states=states), Flags(fraction))
        if since(release, "0.5.7"):
            drafted = replace(states, draft_tokens=4, max_running_requests=32)
            launch = replace(launch_of(avail, total, model), states=drafted)
            yield Case("states, speculation", launch, Flags(fraction, algorithm="EAGLE"))


def fraction_cases() -> Iterator[tuple[str, LaunchFlags]]:
    """Yield flags: cards x tp, and then one flag after the other on some of them."""
    cards = (15360.0, 24564.0, 32607.0, 46068.0, 81559.0, 97887.0, 143771.0, 183359.0)
    for card, tp in itertools.product(cards, (1, 2, 4, 8, 16)):
        base = LaunchFlags(card, tp=tp)
        yield "card and tp", base
        for group, change in _changes():
            yield group, change(base)
    yield "unknown card", LaunchFlags(None)


def _changes() -> list[tuple[str, Callable[[LaunchFlags], LaunchFlags]]]:
    def setting(group: str, **values: object) -> tuple[str, Callable[[LaunchFlags], LaunchFlags]]:
        return group, lambda flags: replace(flags, **values)  # type: ignore[arg-type]

    return [
        setting("pp", pp=2),
        setting("dp attention", dp_attention=True, dp=4),
        setting("speculation", speculative="EAGLE"),
        setting("speculation", speculative="STANDALONE"),
        setting("speculation", speculative="NGRAM"),
        setting("chunk", chunked_prefill_size=6144),
        setting("chunk", chunked_prefill_size=-1),
        setting("graphs", graph_max_bs=160),
        setting("graphs", graphs=False),
        setting("prefill graphs", prefill_graphs=True),
        setting("prefill graphs", prefill_graphs=False),
        setting("prefill graphs", prefill_graphs=True, prefill_graph_max_tokens=3000),
        setting("prefill graphs", max_total_tokens=5000),
        setting("prefill graphs", context_length=2000),
        setting("prefill graphs", llama2=True),
        setting("MLA", mla=True),
        setting("MLA", mla=True, prefill_graphs=True, speculative="EAGLE3"),
        setting("multimodal", vision=Vision(27, 1152)),
        setting("multimodal", vision=Vision()),
        setting("multimodal", vision=Vision(configured=False)),
        setting(
            "PD roles", disaggregation="decode", max_running_requests=2048, draft_tokens=4, vision=Vision(32, 1280)
        ),
        setting("PD roles", disaggregation="prefill", dp_attention=True, dp=2),
        setting("DeepEP", deepep=True, dp_attention=True, dp=8, mla=True),
        setting("DeepEP", deepep=True, breakable=True),
        setting("running requests", max_running_requests=64),
        setting("post capture", post_capture=True),
        setting("post capture", post_capture=True, vision=Vision(27, 1152)),
        setting("XPU", xpu=True, cuda=False),
    ]
