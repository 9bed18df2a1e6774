"""Stand-ins for what SGLang's sizing functions look at: its arguments, its model's configuration, its model runner."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from logscope.budget import Latent, Launch, since
from logscope.units import GIB

from .budget_world import NOTHING, Bag, Names, Runner, make_names

BYTES = {"float8_e4m3fn": 1, "float8_e5m2": 1, "float4_e2m1fn_x2": 1, "uint8": 1, "bfloat16": 2, "float32": 4}


@dataclass(frozen=True, slots=True)
class Flags:
    """Arguments of a launch beside those of ``Launch``: its fraction and what only SGLang's functions ask for."""

    fraction: float
    dtype: str = "bfloat16"
    algorithm: str | None = None
    context_length: int = 32768


def _dtype(name: str) -> Any:
    return Bag(name=name, itemsize=BYTES[name])


TORCH = Bag(
    _utils=Bag(_element_size=lambda dtype: BYTES[dtype.name]),
    dtype=NOTHING,
    **{name: _dtype(name) for name in BYTES},
)
POOL = Bag(
    quant_block_size=128, index_k_with_scale_buffer_dtype=TORCH.uint8, rope_storage_dtype=TORCH.bfloat16, dtype=NOTHING
)


def budget_names(launch: Launch, flags: Flags, release: str) -> Names:
    model = launch.model
    assert model is not None, "conformance knows its models"
    avail = launch.avail.low / GIB
    index_dim = model.attention.index_head_dim if isinstance(model.attention, Latent) else None
    indexed = index_dim is not None
    args = _args(launch, flags)
    if launch.states and launch.states.count and not since(release, "0.5.3.post2"):
        args.max_mamba_cache_size = (
            launch.states.count // launch.states.dp_size
        )  # divided before, while the runner is made
    elide = isinstance(model.attention, Latent) and model.attention.index_layers is not None
    kept = model.attention.index_layers if isinstance(model.attention, Latent) else None

    def get(*_args: Any) -> Bag:
        return args

    contexts = (
        "get_schedule",
        "get_memory",
        "get_spec",
        "get_parallel",
        "get_exec",
        "get_disagg",
        "get_mm",
        "get_context",
    )
    return make_names(
        torch=TORCH,
        **dict.fromkeys(contexts, get),
        get_model=get,
        get_available_gpu_memory=lambda *_a, **_n: avail,
        get_attention_tp_size=lambda: model.attention_tp,
        is_float4_e2m1fn_x2=lambda dtype: dtype.name == "float4_e2m1fn_x2",
        **{f"is_deepseek_{kind}": (lambda _config: indexed) for kind in ("nsa", "dsa")},
        **{f"get_{kind}_index_head_dim": (lambda _config: index_dim) for kind in ("nsa", "dsa")},
        get_dsa_index_kpool=lambda _config: 1,
        NSATokenToKVPool=POOL,
        DSATokenToKVPool=POOL,
        AttentionArch=Bag(MLA="MLA", MHA="MHA"),
        MemoryPoolConfig=Bag,
        mambaish_config=lambda _config: _mamba_config(launch),
        mm_runtime_reservation_gb=lambda **_named: launch.multimodal.low / GIB,
        get_glm_dsa_layer_split_effective_num_layers=lambda _kvc, layers: layers,
        get_glm_dsa_cp_layer_shard_info=lambda _kvc: (0, 1),
        _should_elide_dsa_index_k=lambda **_named: elide,
        dsa_layer_skips_topk=lambda _config, layer: kept is not None and layer >= kept,
        compute_page_shard_scratch_bytes=lambda *_a, **_n: 0,
        parse_qsa_profile=lambda _config: None,
        _pd_prefill_skips_mamba_spec_state=lambda: False,
        kimi_linear_config=lambda _config: None,
        global_server_args_dict={},
    )


def _args(launch: Launch, flags: Flags) -> Bag:
    spec, states, model = launch.speculation, launch.states, launch.model
    assert model is not None, "conformance knows its models"
    kv_dtype = {"float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2", "float4_e2m1fn_x2": "fp4_e2m1"}
    return Bag(
        mem_fraction_static=flags.fraction,
        page_size=launch.page_size,
        kv_cache_dtype=kv_dtype.get(flags.dtype, "auto"),
        enable_mla=True,
        disable_mla=False,
        max_total_tokens=launch.max_total_tokens,
        max_running_requests=states.max_running_requests if states else launch.max_running_requests,
        dp_size=launch.dp_size if not states else states.dp_size,
        enable_dp_attention=(states.dp_size if states else launch.dp_size) > 1,
        speculative_algorithm=flags.algorithm,
        speculative_num_steps=spec.steps if spec else None,
        speculative_eagle_topk=spec.topk if spec else None,
        speculative_num_draft_tokens=spec.draft_tokens if spec else (states.draft_tokens or None if states else None),
        max_mamba_cache_size=states.count if states else None,
        mamba_full_memory_ratio=states.ratio if states else 0.9,
        disable_radix_cache=not states.radix_cache if states else False,
        swa_full_tokens_ratio=launch.window_ratio,
        enable_mamba_extra_buffer=lambda: False,
        attn_tp_size=model.attention_tp,
        attn_dcp_size=1,
        dcp_size=1,
        launch_world_size=1,
        world_group=Bag(cpu_group=None),
        graph=NOTHING,
        mamba=NOTHING,
        disaggregation_mode="null",
        kernel=Bag(dsa_prefill_backend="flashmla_sparse", dsa_decode_backend="flashmla_sparse"),
        dsa_prefill_backend="flashmla_sparse",
        dsa_decode_backend="flashmla_sparse",
        pp_size=1,
        tp_size=model.attention_tp,
    )


def _mamba_config(launch: Launch) -> Bag | None:
    if launch.states is None or launch.model is None:
        return None
    layers = list(range(launch.model.layers))
    params = Bag(mamba_cache_per_req=launch.states.bytes_per_request, layers=[100, 101])
    return Bag(
        full_attention_layer_ids=layers,
        mamba2_cache_params=params,
        mamba_cache_per_req=launch.states.bytes_per_request,
    )


def _spec(algorithm: str | None) -> Bag:
    eagle = algorithm in ("EAGLE", "EAGLE3", "NEXTN")
    return Bag(
        is_none=lambda: algorithm is None,
        is_eagle=lambda: eagle,
        is_standalone=lambda: algorithm == "STANDALONE",
        is_dflash=lambda: False,
        is_dflash_family=lambda: False,
    )


def make_runner(launch: Launch, flags: Flags, names: Names) -> Runner:
    model = launch.model
    assert model is not None, "conformance knows its models"
    window = model.window
    windows = window.layers if window else 0
    args = names["get_schedule"]()
    config = _model_config(launch, flags)
    mamba = _mamba_config(launch)
    config.hf_config.full_attention_layer_ids = mamba.full_attention_layer_ids if mamba else None
    config.hf_config.mamba_cache_per_req = mamba.mamba_cache_per_req if mamba else None
    layers = model.layers + windows
    info = Bag(
        start_layer=0,
        end_layer=layers,
        num_effective_layers=layers,
        full_attention_layer_ids=config.full_attention_layer_ids,
        swa_attention_layer_ids=config.swa_attention_layer_ids,
    )
    dp_size = args.dp_size
    layer_list = [_layer(number, number >= model.layers) for number in range(layers)]
    return Runner(
        server_args=args,
        model_config=config,
        mem_fraction_static=flags.fraction,
        use_mla_backend=isinstance(model.attention, Latent),
        tp_size=model.attention_tp,
        tp_rank=0,
        pp_size=1,
        is_draft_worker=False,
        num_effective_layers=layers,
        start_layer=0,
        end_layer=layers,
        layer_info=info,
        dtype=TORCH.bfloat16,
        kv_cache_dtype=getattr(TORCH, flags.dtype),
        kv_cache_dtype_str=args.kv_cache_dtype,
        page_size=launch.page_size,
        dp_size=dp_size,
        attn_dp_size=dp_size,
        ps=Bag(pp_size=1, attn_dp_size=dp_size),
        spec_algorithm=_spec(flags.algorithm),
        eagle_draft_num_layers=model.draft_layers or None,
        spec_aux_config=Bag(eagle_draft_num_layers=model.draft_layers or None),
        mambaish_config=mamba,
        is_hybrid_gdn=mamba is not None,
        hybrid_gdn_config=mamba if launch.states and launch.states.linear else None,
        extra_mamba_cache_bytes_per_req=0,
        is_hybrid=1.0 if window else None,
        is_hybrid_swa=bool(window),
        sliding_window_size=128 if window else None,
        model=Bag(model=Bag(layers=layer_list)),
        fused_entry_bytes=lambda _kind: None,
    )


def _layer(number: int, windowed: bool) -> Bag:
    return Bag(layer_id=number, self_attn=Bag(attn=Bag(sliding_window_size=128 if windowed else -1)))


def _model_config(launch: Launch, flags: Flags) -> Bag:
    model = launch.model
    assert model is not None, "conformance knows its models"
    window, attention = model.window, model.attention
    windows = window.layers if window else 0
    config = Bag(
        num_hidden_layers=model.layers + windows,
        context_len=flags.context_length,
        hf_config=Bag(architectures=["SomeForCausalLM"]),
        is_hybrid_swa=bool(window),
        full_attention_layer_ids=list(range(model.layers)) if window else None,
        swa_attention_layer_ids=list(range(model.layers, model.layers + windows)) if window else None,
    )
    if isinstance(attention, Latent):
        config.attention_arch = "MLA"
        config.kv_lora_rank, config.qk_rope_head_dim = attention.kv_lora_rank, attention.qk_rope_head_dim
        return config
    config.attention_arch = "MHA"
    config.num_key_value_heads = attention.kv_heads
    config.get_num_kv_heads = functools.partial(_share, attention.kv_heads)
    config.head_dim, config.v_head_dim = attention.head_dim, attention.v_head_dim or attention.head_dim
    if window:
        config.get_swa_num_kv_heads = functools.partial(_share, window.heads.kv_heads)
        config.swa_head_dim = window.heads.head_dim
        config.swa_v_head_dim = window.heads.v_head_dim or window.heads.head_dim
    return config


def _share(heads: int, tp_size: int, _dcp_size: int = 1) -> int:
    return max(1, heads // tp_size)
