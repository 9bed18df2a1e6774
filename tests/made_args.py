"""What a made launch was asked for: its command line, and the arguments that SGLang prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from made import Made


def command_text(made: Made) -> str:
    """Return the command line as a shell echoes it, with what was typed."""
    typed: dict[str, object] = {"model-path": "/models/made-70b", "tp": made.tp, "port": made.port}
    chosen: dict[str, tuple[object, object]] = {
        "mem-fraction-static": (made.fraction, None), "max-total-tokens": (made.max_total_tokens, None),
        "page-size": (made.page_size, 1), "dtype": (made.dtype, "bfloat16"), "kv-cache-dtype": (made.kv_dtype, "auto"),
        "quantization": (made.quantization, None), "cuda-graph-max-bs": (made.graph_bs, 128),
        "attention-backend": (made.attention_backend, "fa3"),
    }  # fmt: skip
    typed |= {name.replace("_", "-"): value for name, value in made.extra_args.items()}
    typed |= {name: value for name, (value, usual) in chosen.items() if value != usual}
    if made.draft:
        typed |= {"speculative-algorithm": "EAGLE", "speculative-draft-model-path": "/models/made-eagle"}
    flags = " ".join(f"--{name} {value}" for name, value in typed.items())
    env = "".join(f"{name}={value} " for name, value in made.env.items())
    return f"+ {env}python3 -m sglang.launch_server {flags}{' --disable-cuda-graph' if made.disable_cuda_graph else ''}"


def args_text(made: Made) -> str:
    """Return the arguments in force, as the release prints them."""
    values: dict[str, object] = {
        "model_path": "/models/made-70b", "tokenizer_path": "/models/made-70b", "host": "127.0.0.1", "port": made.port,
        "dtype": made.dtype, "quantization": made.quantization, "kv_cache_dtype": made.kv_dtype,
        "mem_fraction_static": made.fraction_in_force, "max_total_tokens": made.max_total_tokens, "page_size": made.page_size,
        "tp_size": made.tp, "random_seed": made.seed, "attention_backend": made.attention_backend,
        "speculative_algorithm": "EAGLE" if made.draft else None,
        "speculative_draft_model_path": "/models/made-eagle" if made.draft else None,
        "cuda_graph_max_bs": made.graph_bs, "disable_cuda_graph": made.disable_cuda_graph,
        "enable_lora": False, "max_lora_rank": None, "chunked_prefill_size": 8192,
    }  # fmt: skip
    values |= made.extra_args
    if made.release == "0.5.23":
        return repr(values)
    return f"ServerArgs({', '.join(f'{name}={value!r}' for name, value in values.items())})"
