"""The built-in pattern files: complete, unambiguous, and quiet where millions of lines are."""

from __future__ import annotations

from collections import Counter

import pytest

from conftest import gb
from logscope.events import Recogniser
from logscope.model import Event
from logscope.packcheck import check_packs, message_of
from logscope.packs import Packs
from logscope.server_args import Command, ServerArgs
from logscope.units import MIB, Quantity

PHASES = {
    "server_args",
    "init_torch_distributed",
    "load_weights",
    "kv_cache",
    "memory_pool",
    "cuda_graph",
    "ready",
    "failure",
    "serving",
}

Plain = int | float | str | tuple[int | str, ...]
Family = tuple[str, str, str, dict[str, Plain]]

AT = "[2026-01-05 10:00:00 TP1] "
MAIN = "[2026-01-05 10:00:00] "

# Families of messages about memory, from SGLang 0.1.13 to 0.5.23: (family, event, a line with made-up values, what must be read).
FAMILIES: list[Family] = [
    ("init nccl begin", "init_torch_distributed.begin", "[10:00:00 TP1] Init nccl begin.", {}),
    ("init torch distributed begin", "init_torch_distributed.begin", AT + "Init torch distributed begin.", {}),
    (
        "init torch distributed ends, mem usage",
        "init_torch_distributed.end",
        AT + "Init torch distributed ends. mem usage=0.71 GB",
        {"mem_usage_bytes": gb("0.71")},
    ),
    (
        "init torch distributed ends, elapsed and mem usage",
        "init_torch_distributed.end",
        AT + "Init torch distributed ends. elapsed=11.37 s, mem usage=-0.02 GB",
        {"elapsed_s": 11.37, "mem_usage_bytes": -gb("0.02")},
    ),
    (
        "memory baseline taken",
        "init_torch_distributed.baseline",
        AT + "Memory baseline taken. mem usage=0.03 GB",
        {"drop_bytes": gb("0.03")},
    ),
    (
        "unbalanced, bare",
        "failure.memory_unbalanced",
        "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes.",
        {},
    ),
    (
        "unbalanced, min_per_gpu_memory",
        "failure.memory_unbalanced",
        "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
        "min_per_gpu_memory=12.5, local_gpu_memory=79.25, local_gpu_memory * 0.9=71.325",
        {"min_per_gpu_memory_bytes": gb("12.5"), "local_gpu_memory_bytes": gb("79.25")},
    ),
    (
        "unbalanced, pre_model_load_memory",
        "failure.memory_unbalanced",
        "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
        "pre_model_load_memory=12.5, local_gpu_memory=79.25, local_gpu_memory * 0.9=71.325",
        {"pre_model_load_memory_bytes": gb("12.5"), "local_gpu_memory_bytes": gb("79.25")},
    ),
    (
        "load weight begin",
        "load_weights.begin",
        AT + "Load weight begin. avail mem=78.13 GB",
        {"avail_mem_bytes": gb("78.13")},
    ),
    (
        "load weight end, no mem usage",
        "load_weights.end",
        "[10:00:00 TP1] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.02 GB",
        {"model_type": "LlamaForCausalLM", "dtype": "torch.bfloat16", "avail_mem_bytes": gb("63.02")},
    ),
    (
        "load weight end, mem usage",
        "load_weights.end",
        AT + "Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.02 GB, mem usage=15.11 GB.",
        {
            "model_type": "LlamaForCausalLM",
            "dtype": "torch.bfloat16",
            "avail_mem_bytes": gb("63.02"),
            "mem_usage_bytes": gb("15.11"),
        },
    ),
    (
        "load weight end, elapsed",
        "load_weights.end",
        AT + "Load weight end. elapsed=9.41 s, type=LlamaForCausalLM, dtype=torch.float16, avail mem=63.02 GB, "
        "mem usage=15.11 GB.",
        {
            "elapsed_s": 9.41,
            "model_type": "LlamaForCausalLM",
            "dtype": "torch.float16",
            "avail_mem_bytes": gb("63.02"),
            "mem_usage_bytes": gb("15.11"),
        },
    ),
    (
        "load weight end, elapsed, no dtype",
        "load_weights.end",
        AT
        + "Load weight end. elapsed=9.41 s, type=LlamaForCausalLM, quant=fp8, avail mem=63.02 GB, mem usage=15.11 GB.",
        {
            "elapsed_s": 9.41,
            "model_type": "LlamaForCausalLM",
            "quant": "fp8",
            "avail_mem_bytes": gb("63.02"),
            "mem_usage_bytes": gb("15.11"),
        },
    ),
    (
        "load weight end, committed",
        "load_weights.committed",
        AT + "Load weight end. Committed real weights after CUDA graph capture in 3.14 s "
        "(capture overlap window 21.50 s, startup overlap total 33.25 s)",
        {"elapsed_s": 3.14, "window_s": 21.5, "overlap_s": 33.25},
    ),
    (
        "kv cache, no tokens",
        "kv_cache.allocated",
        AT + "KV Cache is allocated. K size: 8.03 GB, V size: 8.04 GB.",
        {"k_size_bytes": gb("8.03"), "v_size_bytes": gb("8.04")},
    ),
    (
        "kv cache, tokens, K and V",
        "kv_cache.allocated",
        AT + "KV Cache is allocated. #tokens: 131072, K size: 8.03 GB, V size: 8.04 GB",
        {"tokens": 131072, "k_size_bytes": gb("8.03"), "v_size_bytes": gb("8.04")},
    ),
    (
        "kv cache, tokens, KV",
        "kv_cache.allocated",
        AT + "KV Cache is allocated. #tokens: 131072, KV size: 9.01 GB",
        {"tokens": 131072, "kv_size_bytes": gb("9.01")},
    ),
    (
        "kv cache, dtype",
        "kv_cache.allocated",
        AT + "KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 131072, KV size: 9.01 GB",
        {"dtype": "torch.float8_e4m3fn", "tokens": 131072, "kv_size_bytes": gb("9.01")},
    ),
    (
        "kv cache, label",
        "kv_cache.allocated",
        AT + "SWA KV Cache is allocated. dtype: torch.bfloat16, #tokens: 4096, K size: 0.25 GB, V size: 0.26 GB",
        {
            "label": "SWA",
            "dtype": "torch.bfloat16",
            "tokens": 4096,
            "k_size_bytes": gb("0.25"),
            "v_size_bytes": gb("0.26"),
        },
    ),
    (
        "kv cache, VA upper bound",
        "kv_cache.reserved",
        AT + "KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 262144, KV size: 18.02 GB",
        {"dtype": "torch.bfloat16", "max_tokens": 262144, "max_kv_bytes": gb("18.02")},
    ),
    (
        "kv cache skipped",
        "kv_cache.skipped",
        AT + "KV Cache skipped (no-op pool). Logical #tokens: 131072, physical K/V size: ~2.5 KB placeholder",
        {"logical_tokens": 131072, "placeholder_bytes": 2560},
    ),
    (
        "mamba cache, no slots",
        "kv_cache.mamba",
        AT + "Mamba Cache is allocated. conv_state size: 0.12GB, ssm_state size: 2.51GB ",
        {"conv_state_bytes": gb("0.12"), "ssm_state_bytes": gb("2.51")},
    ),
    (
        "mamba cache, slots",
        "kv_cache.mamba",
        AT + "Mamba Cache is allocated. max_mamba_cache_size: 96, conv_state size: 0.12GB, ssm_state size: 2.51GB "
        "intermediate_ssm_state_cache size: 0.75GB intermediate_conv_window_cache size: 0.01GB ",
        {
            "max_mamba_cache_size": 96,
            "conv_state_bytes": gb("0.12"),
            "ssm_state_bytes": gb("2.51"),
            "intermediate_ssm_bytes": gb("0.75"),
            "intermediate_conv_bytes": gb("0.01"),
        },
    ),
    (
        "SWA pool, unrounded",
        "kv_cache.swa_pool",
        AT + "SWAKVPool mem usage: 10.001953125 GB, swa size: 32768, full size: 163840",
        {"total_bytes": gb("10.001953125"), "swa_tokens": 32768, "full_tokens": 163840},
    ),
    (
        "SWA pool, rounded",
        "kv_cache.swa_pool",
        AT + "SWAKVPool mem usage: 10.25 GB, swa size: 32768, full size: 163840",
        {"total_bytes": gb("10.25"), "swa_tokens": 32768, "full_tokens": 163840},
    ),
    (
        "Sliding window, capital S",
        "kv_cache.swa_split",
        AT + "Use Sliding window memory pool. full_layer_tokens=163840, swa_layer_tokens=32768",
        {"full_layer_tokens": 163840, "swa_layer_tokens": 32768},
    ),
    (
        "sliding window",
        "kv_cache.swa_split",
        AT + "Use sliding window memory pool (all SWA). swa_layer_tokens=32768",
        {"swa_layer_tokens": 32768},
    ),
    (
        "DSV4 memory calculation",
        "kv_cache.dsv4_budget",
        AT + "DSV4 memory calculation: bytes_per_full_token=8192.25, available_bytes=17.11 GB, full_token=2242560",
        {"full_token_bytes": 8192.25, "available_bytes": gb("17.11"), "full_tokens": 2242560},
    ),
    (
        "DSV4 pool sizes",
        "kv_cache.dsv4_pools",
        AT + "DSV4 pool sizes: full=2242560, swa=224256, c4=560640, c128=17520, c4_state=14016, c128_state=3504",
        {"full_tokens": 2242560, "swa_tokens": 224256, "c4_tokens": 560640, "c128_tokens": 17520},
    ),
    (
        "unified memory pool",
        "kv_cache.unified",
        AT + "[unified-memory-pool] UnifiedKVPool allocated: total_bytes=10.00 GB (=10737418240 B), 2 sub-pool(s)",
        {"total_bytes": 10737418240, "sub_pools": 2},
    ),
    (
        "post-capture KV sizing",
        "kv_cache.post_capture",
        AT + "Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 163840, KV size: 20.02 GB, "
        "avail mem=2.22 GB",
        {
            "dtype": "torch.bfloat16",
            "tokens": 163840,
            "kv_size_bytes": gb("20.02"),
            "avail_mem_bytes": gb("2.22"),
        },
    ),
    (
        "int8 mamba checkpoint pool",
        "kv_cache.mamba_int8",
        AT
        + "int8 mamba checkpoint pool: 256 slots, 1.61GB (qdata 1.50 + scale 0.06 + conv 0.05); active mamba pool 96 slots",
        {
            "slots": 256,
            "total_bytes": gb("1.61"),
            "qdata_bytes": gb("1.50"),
            "scale_bytes": gb("0.06"),
            "conv_bytes": gb("0.05"),
            "active_slots": 96,
        },
    ),
    (
        "memory pool end",
        "memory_pool.end",
        AT + "Memory pool end. avail mem=8.88 GB",
        {"avail_mem_bytes": gb("8.88")},
    ),
    (
        "KV cache dtype",
        "kv_cache.dtype",
        AT + "Using KV cache dtype: torch.bfloat16",
        {"dtype": "torch.bfloat16"},
    ),
    (
        "capture begin, no memory",
        "cuda_graph.begin",
        "[10:00:00 TP1] Capture cuda graph begin. This can take up to several minutes.",
        {},
    ),
    (
        "capture begin, memory",
        "cuda_graph.begin",
        AT + "Capture cuda graph begin. This can take up to several minutes. avail mem=8.88 GB",
        {"avail_mem_bytes": gb("8.88")},
    ),
    (
        "capture end, no memory",
        "cuda_graph.end",
        AT + "Capture cuda graph end. Time elapsed: 14.25 s",
        {"elapsed_s": 14.25},
    ),
    (
        "capture end, avail mem first",
        "cuda_graph.end",
        AT + "Capture cuda graph end. Time elapsed: 14.25 s. avail mem=7.11 GB. mem usage=1.77 GB.",
        {"elapsed_s": 14.25, "avail_mem_bytes": gb("7.11"), "mem_usage_bytes": gb("1.77")},
    ),
    (
        "capture end, mem usage first",
        "cuda_graph.end",
        AT + "Capture cuda graph end. Time elapsed: 14.25 s. mem usage=1.77 GB. avail mem=7.11 GB.",
        {"elapsed_s": 14.25, "avail_mem_bytes": gb("7.11"), "mem_usage_bytes": gb("1.77")},
    ),
    (
        "capture target decode begin",
        "cuda_graph.begin",
        AT
        + "Capture target decode CUDA graph begin. backend=full, num_tokens_per_bs=1, bs=[1, 2, 4], avail mem=8.88 GB",
        {
            "kind": "decode",
            "worker": "target",
            "backend": "full",
            "num_tokens_per_req": 1,
            "bs": (1, 2, 4),
            "avail_mem_bytes": gb("8.88"),
        },
    ),
    (
        "capture target verify end",
        "cuda_graph.end",
        AT + "Capture target verify CUDA graph end. elapsed=5.75 s, mem usage=0.52 GB, avail mem=8.36 GB.",
        {
            "kind": "verify",
            "worker": "target",
            "elapsed_s": 5.75,
            "mem_usage_bytes": gb("0.52"),
            "avail_mem_bytes": gb("8.36"),
        },
    ),
    (
        "capture target prefill begin",
        "cuda_graph.begin",
        AT + "Capture target prefill CUDA graph begin. backend=breakable, num_tokens=[4, 8], avail mem=8.36 GB",
        {
            "kind": "prefill",
            "worker": "target",
            "backend": "breakable",
            "num_tokens": (4, 8),
            "avail_mem_bytes": gb("8.36"),
        },
    ),
    ("capture bs", "cuda_graph.batch_sizes", AT + "Capture cuda graph bs [1, 2, 4, 8]", {"bs": (1, 2, 4, 8)}),
    (
        "capture piecewise begin",
        "cuda_graph.begin",
        AT + "Capture piecewise CUDA graph begin. avail mem=8.36 GB",
        {"kind": "piecewise", "avail_mem_bytes": gb("8.36")},
    ),
    (
        "capture draft begin",
        "cuda_graph.begin",
        AT + "Capture draft cuda graph begin. This can take up to several minutes. avail mem=5.55 GB",
        {"kind": "draft decode", "worker": "draft", "avail_mem_bytes": gb("5.55")},
    ),
    (
        "capture draft extend end",
        "cuda_graph.end",
        AT + "Capture draft extend cuda graph end. Time elapsed: 2.25 s. avail mem=5.11 GB. mem usage=0.44 GB.",
        {
            "kind": "draft extend",
            "worker": "draft",
            "elapsed_s": 2.25,
            "avail_mem_bytes": gb("5.11"),
            "mem_usage_bytes": gb("0.44"),
        },
    ),
    (
        "capture draft, upper case",
        "cuda_graph.end",
        AT + "Capture draft decode CUDA graph end. elapsed=2.25 s, mem usage=0.44 GB, avail mem=5.11 GB.",
        {
            "kind": "draft decode",
            "worker": "draft",
            "elapsed_s": 2.25,
            "mem_usage_bytes": gb("0.44"),
            "avail_mem_bytes": gb("5.11"),
        },
    ),
    (
        "capture bar, memory",
        "cuda_graph.progress",
        "Capturing batches (avail_mem=7.77 GB):  50%|█████     | 2/4 [00:01<00:02,  1.25it/s]",
        {"avail_mem_bytes": gb("7.77"), "done": 2, "total": 4, "spent_s": 1, "left_s": 2},
    ),
    (
        "capture bar, bs and memory",
        "cuda_graph.progress",
        "Capturing batches (bs=8 avail_mem=7.77 GB):  25%|██▌       | 1/4 [00:01<00:03,  1.25s/it]",
        {"bs": 8, "avail_mem_bytes": gb("7.77"), "done": 1, "total": 4, "spent_s": 1, "left_s": 3},
    ),
    (
        "capacity, no chunked prefill",
        "ready.capacity",
        "[10:00:00 TP1] max_total_num_tokens=131072, max_prefill_tokens=16384, max_running_requests=2049, context_len=8192",
        {
            "max_total_num_tokens": 131072,
            "max_prefill_tokens": 16384,
            "max_running_requests": 2049,
            "context_len_tokens": 8192,
        },
    ),
    (
        "capacity, no memory",
        "ready.capacity",
        AT
        + "max_total_num_tokens=131072, chunked_prefill_size=4096, max_prefill_tokens=16384, max_running_requests=2049, "
        "context_len=8192",
        {
            "max_total_num_tokens": 131072,
            "chunked_prefill_size_tokens": 4096,
            "max_prefill_tokens": 16384,
            "max_running_requests": 2049,
            "context_len_tokens": 8192,
        },
    ),
    (
        "capacity, memory",
        "ready.capacity",
        AT
        + "max_total_num_tokens=131072, chunked_prefill_size=4096, max_prefill_tokens=16384, max_running_requests=2049, "
        "context_len=8192, available_gpu_mem=6.66 GB",
        {
            "max_total_num_tokens": 131072,
            "chunked_prefill_size_tokens": 4096,
            "max_prefill_tokens": 16384,
            "max_running_requests": 2049,
            "context_len_tokens": 8192,
            "available_mem_bytes": gb("6.66"),
        },
    ),
    (
        "profiled value",
        "kv_cache.profiled_limit",
        MAIN + "max_total_tokens=500000 is larger than the profiled value 131072. Use the profiled value instead.",
        {"asked_tokens": 500000, "profiled_tokens": 131072},
    ),
    (
        "not enough memory, bare",
        "failure.not_enough_memory",
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        {},
    ),
    (
        "not enough memory, self.server_args",
        "failure.not_enough_memory",
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
        "Current value: self.server_args.mem_fraction_static=0.61",
        {"mem_fraction_static": 0.61},
    ),
    (
        "not enough memory, mem_fraction_static",
        "failure.not_enough_memory",
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
        "Current value: mem_fraction_static=0.61",
        {"mem_fraction_static": 0.61},
    ),
    (
        "weights leave no memory",
        "failure.weights_leave_no_memory",
        "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.4. Raise "
        "--mem-fraction-static above 0.712 (minimum viable = 1 - available/pre = 0.7115). If using speculative decoding, "
        "draft weights are now counted.",
        {"mem_fraction_static": 0.4, "suggested": 0.712, "minimum": 0.7115},
    ),
    (
        "no memory for hybrid state",
        "failure.hybrid_state_no_memory",
        "RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed "
        "max_mamba_cache_size=-3 (total_rest_memory=-0.50 GB, mamba_cache_per_req=25.00 MB). Try: (1) reduce "
        "--max-running-requests, (2) increase --mem-fraction-static.",
        {"max_mamba_cache_size": -3, "total_rest_bytes": -gb("0.50"), "cache_per_request_bytes": 25 * MIB},
    ),
    (
        "capture failed",
        "failure.capture_failed",
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacity "
        "of 79.25 GiB of which 12.00 MiB is free. Of the allocated memory 70.50 GiB is allocated by PyTorch, and 1.25 GiB is reserved "
        "by PyTorch but unallocated.",
        {
            "asked_bytes": 20 * MIB,
            "total_bytes": gb("79.25"),
            "free_bytes": 12 * MIB,
            "allocated_bytes": gb("70.50"),
            "unallocated_bytes": gb("1.25"),
            "device": 1,
        },
    ),
    (
        "capture failed, upper case",
        "failure.capture_failed",
        "Exception: Capture CUDA graph failed: no such kernel",
        {"message": "no such kernel"},
    ),
    (
        "HiCache host memory",
        "memory_pool.host",
        AT + "Allocating 48.00 GB host memory for hierarchical KV cache.",
        {"host_size_bytes": 48 * 10**9},
    ),
    (
        "HiCache host pool",
        "memory_pool.host",
        AT + "Allocating kv hierarchical KV host pool: 262144 tokens, 48.00 GB host memory.",
        {"label": "kv", "host_tokens": 262144, "host_size_bytes": 48 * 10**9},
    ),
    (
        "not enough host memory",
        "failure.host_memory",
        "ValueError: Not enough host memory available. Requesting 48.00 GB but only have 31.50 GB free. Please reduce the "
        "size of the hierarchical cache.",
        {"requested_bytes": 48 * 10**9, "available_bytes": 315 * 10**8},
    ),
    (
        "symmetric memory pool",
        "init_torch_distributed.symmetric_memory",
        AT + "Pre-allocating symmetric memory pool with 4 GiB",
        {"pool_size_bytes": gb("4")},
    ),
    (
        "LoRA starts",
        "memory_pool.lora_begin",
        AT + "LoRA adapter loading starts: LoRARef(lora_id=0a1b, lora_name=sql). avail mem=6.66 GB",
        {"adapter": "LoRARef(lora_id=0a1b, lora_name=sql)", "avail_mem_bytes": gb("6.66")},
    ),
    (
        "LoRA completes",
        "memory_pool.lora_end",
        AT + "LoRA adapter loading completes: LoRARef(lora_id=0a1b, lora_name=sql). avail mem=6.61 GB",
        {"adapter": "LoRARef(lora_id=0a1b, lora_name=sql)", "avail_mem_bytes": gb("6.61")},
    ),
    (
        "decode out of memory",
        "serving.retract",
        AT + "Decode out of memory happened. #retracted_reqs: 2, #new_token_ratio: 0.3125 -> 0.5000",
        {"retracted_reqs": 2, "new_token_ratio_before": 0.3125, "new_token_ratio": 0.5},
    ),
    (
        "KV cache pool is full",
        "serving.retract",
        AT + "KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_token_ratio: 0.3125 -> 0.5000",
        {"retracted_reqs": 2, "new_token_ratio_before": 0.3125, "new_token_ratio": 0.5},
    ),
    (
        "prefill batch, dot",
        "serving.prefill",
        AT
        + "Prefill batch. #new-seq: 3, #new-token: 512, #cached-token: 64, token usage: 0.07, #running-req: 5, #queue-req: 1",
        {
            "new_seqs": 3,
            "new_tokens": 512,
            "cached_tokens": 64,
            "token_usage": 0.07,
            "running_reqs": 5,
            "queue_reqs": 1,
        },
    ),
    (
        "prefill batch, comma",
        "serving.prefill",
        AT + "Prefill batch [17], #new-seq: 3, #new-token: 512, #cached-token: 64, token usage: 0.07, #running-req: 5, "
        "#queue-req: 1",
        {
            "new_seqs": 3,
            "new_tokens": 512,
            "cached_tokens": 64,
            "token_usage": 0.07,
            "running_reqs": 5,
            "queue_reqs": 1,
        },
    ),
    (
        "decode batch, dot",
        "serving.decode",
        AT
        + "Decode batch. #running-req: 5, #token: 2048, token usage: 0.02, gen throughput (token/s): 123.45, #queue-req: 0",
        {"running_reqs": 5, "used_tokens": 2048, "token_usage": 0.02, "gen_throughput": 123.45, "queue_reqs": 0},
    ),
    (
        "decode batch, comma",
        "serving.decode",
        AT
        + "Decode batch, #running-req: 5, #token: 2048, token usage: 0.02, cuda graph: True, gen throughput (token/s): "
        "123.45, #queue-req: 0",
        {"running_reqs": 5, "used_tokens": 2048, "token_usage": 0.02, "gen_throughput": 123.45, "queue_reqs": 0},
    ),
    (
        "server args, repr",
        "server_args.printed",
        MAIN + "server_args=ServerArgs(model_path='/models/m', tp_size=2, mem_fraction_static=0.88)",
        {"args.tp_size": "2", "args.mem_fraction_static": "0.88"},
    ),
    (
        "server args, dict",
        "server_args.printed",
        MAIN + "server_args={'model_path': '/models/m', 'tp_size': 2, 'mem_fraction_static': 0.88}",
        {"args.tp_size": "2", "args.mem_fraction_static": "0.88"},
    ),
    (
        "watchdog timeout",
        "failure.watchdog",
        AT + "Watchdog timeout (self.watchdog_timeout=300)",
        {"allowed_s": 300},
    ),
    (
        "named watchdog timeout",
        "failure.watchdog",
        AT + "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
        {"process": "Scheduler", "allowed_s": 300},
    ),
    (
        "scheduler exception",
        "failure.scheduler_exception",
        AT + "Scheduler hit an exception: Traceback (most recent call last):",
        {},
    ),
    (
        "sigquit, typo",
        "failure.sigquit",
        MAIN + "Received sigquit from a child proces. It usually means the child failed.",
        {},
    ),
    (
        "sigquit",
        "failure.sigquit",
        MAIN + "Received sigquit from a child process. It usually means the child failed.",
        {},
    ),
    (
        "subprocess crashed",
        "failure.subprocess_crashed",
        MAIN + "Subprocess detokenizer (pid=815) crashed with exit code -9. Triggering SIGQUIT for cleanup...",
        {"process": "detokenizer", "pid": 815, "exit_code": -9},
    ),
    ("fired up", "ready.fired_up", MAIN + "The server is fired up and ready to roll!", {}),
]

SERVING = [
    "[gpu_id=0] #running-req: 5, #token: 2048, token usage: 0.02, #queue-req: 0",
    "[10:00:00 TP0] Decode batch. #running-req: 5, #token: 2048, token usage: 0.02, gen throughput (token/s): 123.45, #queue-req: 0",
    "[10:00:00 TP0] Prefill batch. #new-seq: 1, #new-token: 7, #cached-token: 0, cache hit rate: 0.00%, token usage: 0.00, "
    "#running-req: 0, #queue-req: 0",
    AT + "Decode batch. #running-req: 5, #token: 2048, token usage: 0.02, cuda graph: True, gen throughput (token/s): 123.45, "
    "#queue-req: 0, ",
    AT + "Decode batch, #running-req: 5, #full token: 2048, full token usage: 0.02, #swa token: 1024, swa token usage: 0.05, "
    "cuda graph: True, gen throughput (token/s): 123.45, #queue-req: 0",
    AT + "Decode batch [40], #running-req: 5, #token: 2048, token usage: 0.02, accept len: 2.40, accept rate: 0.60, pre-allocated "
    "usage: 0.00, #prealloc-req: 0, #transfer-req: 0, #retracted-req: 0, cpu graph: False, gen throughput (token/s): 123.45, "
    "#queue-req: 0",
    AT + "Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, "
    "#prealloc-req: 0, #inflight-req: 0, input throughput (token/s): 321.00, cuda graph: False",
    MAIN + "INFO:     127.0.0.1:51234 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK",
    'INFO:     10.0.0.7:40112 - "GET /health HTTP/1.1" 200 OK',
    MAIN + "INFO:     127.0.0.1:51234 - \"POST /generate HTTP/1.1\" 200 OK",
]  # fmt: skip


@pytest.fixture(scope="module")
def dense_recogniser(packs: Packs) -> Recogniser:
    return Recogniser(packs, dense=True)


def shown_values(event: Event) -> dict[str, Plain]:
    """Return the values of an event as plain numbers and texts; those of arguments as args.NAME."""
    shown: dict[str, Plain] = {}
    for name, value in event.values.items():
        if isinstance(value, Quantity):
            shown[name] = value.value
        elif isinstance(value, ServerArgs | Command):
            shown |= {f"args.{key}": str(arg) for key, arg in dict(value.values).items()}
        else:
            shown[name] = value
    return shown


def test_the_built_in_pattern_files_pass_their_own_check(packs: Packs) -> None:
    checked = check_packs(packs)
    assert checked.events >= 200
    assert checked.forms >= 260
    assert checked.samples >= 500


def test_every_phase_of_the_design_is_there_in_launch_order(packs: Packs) -> None:
    assert set(packs.phases) >= PHASES
    orders = [phase.order for phase in packs.phases.values()]
    assert sorted(set(orders)) == orders
    assert {"serving"} == {phase.id for phase in packs.phases.values() if phase.dense}


def test_every_event_says_what_it_means(packs: Packs) -> None:
    assert [] == [pattern.id for pattern in packs.patterns if not pattern.means]
    assert [] == [pattern.id for pattern in packs.patterns if "\n" in pattern.means]


def test_ids_are_unique(packs: Packs) -> None:
    counts = Counter(pattern.id for pattern in packs.patterns)
    assert {} == {name: count for name, count in counts.items() if count > 1}


def test_the_phases_that_take_memory_have_a_begin_and_an_end(packs: Packs) -> None:
    ids = {pattern.id: pattern.edge for pattern in packs.patterns}
    for phase in ("init_torch_distributed", "load_weights", "cuda_graph"):
        assert ("begin", "end") == (ids[f"{phase}.begin"], ids[f"{phase}.end"])
    assert "end" == ids["memory_pool.end"]


def test_no_family_is_listed_twice() -> None:
    assert len(FAMILIES) >= 75
    assert len(FAMILIES) == len({family for family, *_ in FAMILIES})


@pytest.mark.parametrize(("family", "event_id", "line", "want"), FAMILIES, ids=[family for family, *_ in FAMILIES])
def test_every_family_of_memory_lines_is_one_event_with_its_values(
    family: str, event_id: str, line: str, want: dict[str, Plain], dense_recogniser: Recogniser
) -> None:
    message = message_of(line, dense_recogniser.packs.envelope)
    fits = [
        fit for fit in dense_recogniser.fitting(message, dense_recogniser.candidates(message)) if not fit[0].fallback
    ]
    assert [event_id] == [pattern.id for pattern, _, _ in fits], family
    event = dense_recogniser.recognise(message)
    assert isinstance(event, Event)
    got = shown_values(event)
    assert want == {name: got.get(name) for name in want}


@pytest.mark.parametrize(("family", "event_id", "line", "want"), FAMILIES, ids=[family for family, *_ in FAMILIES])
def test_a_family_states_no_memory_but_what_it_prints(
    family: str, event_id: str, line: str, want: dict[str, Plain], dense_recogniser: Recogniser
) -> None:
    """The numbers of bytes are all of them: a value that nobody printed would go into the ledger."""
    event = dense_recogniser.recognise(message_of(line, dense_recogniser.packs.envelope))
    assert isinstance(event, Event)
    got = {name: value for name, value in shown_values(event).items() if name.endswith("_bytes")}
    assert {name: value for name, value in want.items() if name.endswith("_bytes")} == got, (family, event_id)


@pytest.mark.parametrize("line", SERVING)
def test_lines_of_serving_are_skipped_unread(line: str, recogniser: Recogniser) -> None:
    """A gigabyte of serving costs one pass over its bytes: no literal of the other phases stands in it."""
    assert [] == recogniser.gate.find(line.encode())
    assert [] == recogniser.gate.literals_in(line)


def test_no_literal_stands_in_a_sample_of_a_batch(packs: Packs, recogniser: Recogniser) -> None:
    batches = [
        sample.line
        for pattern in packs.patterns
        if pattern.id in ("serving.prefill", "serving.prefill_mixed", "serving.decode")
        for form in pattern.forms
        for sample in form.samples
    ]
    assert len(batches) >= 10
    assert {} == {line: found for line in batches if (found := recogniser.gate.literals_in(line))}
