"""SGLang's own default of mem_fraction_static, run on flags."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from logscope.budget import LaunchFlags, since

from .budget_sglang import FRACTION_PLACES
from .budget_world import NOTHING, Bag, Names, Runner, cut_functions, cut_statement, find_file, make_names

SETTINGS = ("_handle_gpu_memory_settings", "handle_gpu_memory_settings")
TEST = "self.mem_fraction_static is None"


def sglang_fraction(root: Path, release: str, flags: LaunchFlags) -> float:
    """Return mem_fraction_static as a release's server arguments print it where none is given."""
    model = _model_config(flags)
    args = _arguments(flags, model, release)
    names = _names(args, model, flags)
    if not since(release, "0.5.3"):
        names["self"], names["gpu_mem"] = args, flags.card_mib
        path = root / "sglang/srt/server_args.py"
        args._functions = cut_functions(path, names, lambda name: name == "adjust_mem_fraction_for_vlm", "ServerArgs")
        assert cut_statement(path, TEST, names), f"{path}: no default fraction"
        return float(args.mem_fraction_static)
    late = since(release, "0.5.19")
    path = find_file(root, SETTINGS[late], FRACTION_PLACES)
    if late:
        functions = cut_functions(path, names, lambda _name: True)
        cut_functions(
            root / "sglang/srt/arg_groups/cuda_graph_hook.py", names, lambda name: name.startswith("generate_")
        )
        run = functools.partial(functions[SETTINGS[1]], args)
    else:
        args._functions = cut_functions(path, names, _is_wanted, "ServerArgs")
        run = functools.partial(args._functions[SETTINGS[0]], args)
    if since(release, "0.5.20"):
        run()
    else:
        run(flags.card_mib)
    return float(args.mem_fraction_static)


def _is_wanted(name: str) -> bool:
    return "_cuda_graph_" in name or name.startswith(("_handle_gpu_memory", "adjust_mem", "reserve_for"))


def _model_config(flags: LaunchFlags) -> Bag:
    vision = flags.vision
    config = Bag(is_multimodal=vision is not None, hf_config=Bag())
    if vision is not None and vision.configured:
        config.hf_config.vision_config = Bag(num_hidden_layers=vision.layers, hidden_size=vision.hidden)
    return config


def _names(args: Bag, model: Bag, flags: LaunchFlags) -> Names:
    def same(_args: Any) -> Bag:
        return args

    def declare(_args: Any, _why: str, **values: Any) -> None:
        vars(args).update(values)

    return make_names(
        is_cuda=lambda: flags.cuda,
        is_npu=lambda: False,
        ModelConfig=Bag(from_server_args=lambda _args: model),
        envs=Bag(SGLANG_SYMM_MEM_PREALLOC_GB_SIZE=NOTHING),
        Backend=Bag(DISABLED="disabled", BREAKABLE="breakable"),
        Phase=Bag(PREFILL="prefill", DECODE="decode"),
        resolved_view=same,
        resolving_view=same,
        declare_resolution=declare,
        model_config_of=lambda _args: model,
        use_mla_backend=lambda _args: flags.mla,
        post_capture_kv_sizing_planned=lambda _args: flags.post_capture,
        attn_dp_enabled_of=lambda _args: flags.dp_attention,
        get_device_memory_capacity=lambda _device: flags.card_mib,
        get_platform=lambda: Bag(is_xpu=flags.xpu),
        _DEFAULT_PP_PREFILL_CUDA_GRAPH_MAX_TOKENS=8192,
    )


def _arguments(flags: LaunchFlags, model: Bag, release: str) -> Runner:
    prefill = flags.prefill_graphs if flags.prefill_graphs is not None else since(release, "0.5.10")
    backend = ("breakable" if flags.breakable else "tc_piecewise") if prefill else "disabled"
    largest = flags.prefill_graph_max_tokens
    if largest is None and not since(release, "0.5.7"):
        largest = 4096
    args = Runner(
        tp_size=flags.tp,
        pp_size=flags.pp,
        dp_size=flags.dp,
        attn_dp_size=flags.dp,
        device="cuda",
        enable_dp_attention=flags.dp_attention,
        speculative_algorithm=flags.speculative,
        speculative_num_draft_tokens=flags.draft_tokens,
        chunked_prefill_size=flags.chunked_prefill_size,
        max_prefill_tokens=flags.max_prefill_tokens,
        cuda_graph_max_bs=flags.graph_max_bs,
        cuda_graph_config=Bag(
            decode=Bag(max_bs=flags.graph_max_bs, backend="full" if flags.graphs else "disabled"),
            prefill=Bag(max_bs=largest, backend=backend),
        ),
        enable_piecewise_cuda_graph=prefill,
        disable_piecewise_cuda_graph=not prefill,
        piecewise_cuda_graph_max_tokens=largest,
        max_running_requests=flags.max_running_requests,
        max_total_tokens=flags.max_total_tokens,
        context_length=flags.context_length,
        model_path="llama-2-7b" if flags.llama2 else "some-model",
        disaggregation_mode=flags.disaggregation,
        moe_a2a_backend="deepep" if flags.deepep else "none",
        use_mla_backend=lambda: flags.mla,
        get_model_config=lambda: model,
        post_capture_kv_sizing_planned=lambda: flags.post_capture,
        _cuda_graph_config_locked=set(),
    )
    args._resolved = lambda: args
    return args
