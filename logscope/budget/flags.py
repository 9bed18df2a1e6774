"""What the default fraction depends on, and what it is."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Vision(Struct, frozen=True):
    """The vision tower of a multimodal model; 24 layers of 1024 is what SGLang takes where the configuration does not say.

    ``configured``: whether the model has a vision_config at all (from 0.4.9.post3 on one without is not reduced).
    """

    layers: int = 24
    hidden: int = 1024
    configured: bool = True


class LaunchFlags(Struct, frozen=True):
    """What the default fraction depends on. None is "not given": SGLang chooses.

    Attributes:
        card_mib: memory of the smallest card as nvidia-smi states it, MiB; not what is free. None: unknown to SGLang.
        tp, pp: sizes.
        dp: data-parallel size, counted under DP attention only.
        speculative: the algorithm in capitals ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM"), None without.
        graph_max_bs: of decode graphs; the largest of a given list.
        graphs: decode graphs are captured (0.5.15 on asks).
        prefill_graphs: piecewise (later: prefill) graphs; None is the default, off to 0.5.9 and on from 0.5.10.
        prefill_graph_max_tokens: the largest such graph.
        breakable: prefill graphs use the "breakable" backend.
        mla: the model uses MLA, and its backend is in use.
        dsa: it is a DeepSeek NSA/DSA model (of importance in 0.5.3 only).
        draft_tokens: speculative_num_draft_tokens.
        llama2: the model's path has "llama-2" in it.
        disaggregation: the role of the server.
        deepep: MoE all-to-all by DeepEP.
        vision: of a multimodal model that serves images; None for text.
        long_aiter: attention by AITER and a context above 8192.
        post_capture: the pool is sized after graphs are captured (0.5.16 on, off by default).
        cuda, xpu: kind of device.
    """

    card_mib: float | None
    tp: int = 1
    pp: int = 1
    dp: int = 1
    dp_attention: bool = False
    speculative: str | None = None
    draft_tokens: int | None = None
    chunked_prefill_size: int | None = None
    max_prefill_tokens: int = 16384
    graph_max_bs: int | None = None
    graphs: bool = True
    prefill_graphs: bool | None = None
    prefill_graph_max_tokens: int | None = None
    breakable: bool = False
    mla: bool = False
    dsa: bool = False
    vision: Vision | None = None
    max_running_requests: int | None = None
    max_total_tokens: int | None = None
    context_length: int | None = None
    llama2: bool = False
    disaggregation: Literal["null", "prefill", "decode"] = "null"
    deepep: bool = False
    long_aiter: bool = False
    post_capture: bool = False
    cuda: bool = True
    xpu: bool = False


class DefaultFraction(Struct, frozen=True):
    """The chosen fraction: as the server arguments print it, and as the budget uses it.

    ``reserved_mib`` and the two sizes are what it came from (0.5.3 on), None where it came from a table.
    """

    printed: float
    in_force: float
    reserved_mib: float | None = None
    chunked_prefill_size: int | None = None
    graph_max_bs: int | None = None
    terms: tuple[tuple[str, float], ...] = ()
