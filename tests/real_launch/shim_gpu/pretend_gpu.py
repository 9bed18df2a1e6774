"""Pretend that this host has GPUs of 95.58 GiB, so that SGLang takes its CUDA path and captures graphs.

Tensors that are asked for on "cuda" live in CPU memory, big ones in memory that costs nothing until it is written to. How much of a
GPU is taken is computed: a context, the big tensors, each weight times WEIGHT_FACTOR, GRAPH_MIB per captured graph. SGLang's fused
operations run in their own plain versions; its messages are all its own, but for PyTorch's sentence on memory that ran out.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import mmap
import os
import threading
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

GIB, MIB = 1 << 30, 1 << 20
TOTAL = 97871 * MIB
CONTEXT = int(0.6 * GIB)
BIG = 32 * MIB
GPUS = 8
WEIGHT_FACTOR = float(os.environ.get("PRETEND_WEIGHT_FACTOR", "40"))
GRAPH_MIB = float(os.environ.get("PRETEND_GRAPH_MIB", "70"))
WEIGHT_SIZE = 8192  # a bfloat16 tensor of at least so many numbers is a weight


class Gpu:
    """The one that this process uses."""

    def __init__(self) -> None:
        self.used = CONTEXT
        self.device = 0
        self.streams = 0

    def take(self, size: int, error: type[Exception]) -> None:
        """Take memory, or raise what PyTorch raises."""
        free = TOTAL - self.used
        if size > free:
            wanted = f"{size / GIB:.2f} GiB" if size >= GIB else f"{size / MIB:.2f} MiB"
            raise error(
                f"CUDA out of memory. Tried to allocate {wanted}. GPU {self.device} has a total capacity of "
                f"{TOTAL / GIB:.2f} GiB of which {free / GIB:.2f} GiB is free. Process {os.getpid()} has "
                f"{self.used / GIB:.2f} GiB memory in use. Of the allocated memory {(self.used - CONTEXT) / GIB:.2f} GiB is "
                "allocated by PyTorch, and 12.34 MiB is reserved by PyTorch but unallocated. If reserved but unallocated "
                "memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
                "documentation for Memory Management  "
                "(https://docs.pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
            )
        self.used += size


GPU = Gpu()


class Stream:
    """A stream in which everything has already happened."""

    def __init__(self, *_: object, **__: object) -> None:
        GPU.streams += 1
        self.cuda_stream = GPU.streams
        self.device = "cpu"
        self.stream_id = self.device_index = 0
        self.device_type = 1

    def wait_stream(self, *_: object) -> None:
        """Wait for nothing."""

    def wait_event(self, *_: object) -> None:
        """Wait for nothing."""

    def synchronize(self) -> None:
        """Wait for nothing."""

    def record_event(self, *_: object) -> Event:
        """Return a new event."""
        return Event()

    def query(self) -> bool:
        """Return that all is done."""
        return True

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> bool:
        return False


class Event:
    """An event that has happened."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def record(self, *_: object) -> None:
        """Do nothing."""

    def wait(self, *_: object) -> None:
        """Do nothing."""

    def synchronize(self) -> None:
        """Do nothing."""

    def query(self) -> bool:
        """Return that it has happened."""
        return True

    def elapsed_time(self, *_: object) -> float:
        """Return some milliseconds."""
        return 1.0


class Nothing:
    """A context that changes nothing."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> Nothing:
        return self

    def __exit__(self, *_: object) -> bool:
        return False


def pretend_cuda(torch: Any) -> None:
    """Make torch believe in the GPUs."""
    _put_on_cpu(torch)
    for name, value in _cuda_answers(torch).items():
        setattr(torch.cuda, name, value)
    torch.accelerator.is_available = lambda: True
    register = torch.library.register_fake

    def register_fake(op: object, *rest: object, **options: object) -> object:
        is_missing = isinstance(op, str) and op.startswith("sgl_kernel::")
        return (lambda function: function) if is_missing else register(op, *rest, **options)

    torch.library.register_fake = register_fake


def _cuda_answers(torch: Any) -> dict[str, object]:
    card = SimpleNamespace(
        name="NVIDIA H20",
        major=9,
        minor=0,
        total_memory=TOTAL,
        multi_processor_count=78,
        is_integrated=False,
        warp_size=32,
        shared_memory_per_block_optin=232448,
        L2_cache_size=60 * MIB,
        uuid="0",
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048,
    )
    current = Stream()

    def take_graph(*_: object, **__: object) -> None:
        GPU.take(int(GRAPH_MIB * MIB), torch.OutOfMemoryError)

    class Capture(Nothing):
        def __enter__(self) -> Nothing:
            take_graph()
            return self

    class Graph:
        capture_begin = take_graph

        def __init__(self, *_: object, **__: object) -> None:
            pass

        def pool(self) -> tuple[int, int]:
            return (0, 0)

        def capture_end(self) -> None:
            pass

        def replay(self) -> None:
            pass

        def reset(self) -> None:
            pass

    def set_device(device: object) -> None:
        GPU.device = device if isinstance(device, int) else torch.device(device).index or 0

    # each name has a function of its own: torch keeps a table of them
    silent = "empty_cache synchronize reset_peak_memory_stats set_stream init _lazy_init manual_seed manual_seed_all ipc_collect"
    answers: dict[str, object] = {name: _always(None) for name in silent.split()}
    answers |= {name: _always(True) for name in ("is_available", "is_initialized", "is_bf16_supported")}
    answers |= {name: _always(current) for name in ("current_stream", "default_stream")}
    answers |= {name: _used() for name in ("memory_allocated", "memory_reserved", "max_memory_allocated")}
    answers |= {"stream": Nothing, "device": Nothing, "graph": Capture}
    return answers | {
        "device_count": lambda: GPUS,
        "current_device": lambda: GPU.device,
        "set_device": set_device,
        "get_device_properties": lambda *_: card,
        "get_device_capability": lambda *_: (card.major, card.minor),
        "get_device_name": lambda *_: card.name,
        "mem_get_info": lambda *_: (TOTAL - GPU.used, TOTAL),
        "graph_pool_handle": lambda: (0, 0),
        "is_current_stream_capturing": lambda: False,
        "Stream": Stream,
        "Event": Event,
        "CUDAGraph": Graph,
    }


def _always(answer: object) -> Callable[..., object]:
    return lambda *_, **__: answer


def _used() -> Callable[..., int]:
    return lambda *_, **__: GPU.used - CONTEXT


def _do_nothing(*_: object, **__: object) -> None:
    pass


def _is_cuda(torch: Any, device: object) -> bool:
    if isinstance(device, torch.device):
        return bool(device.type == "cuda")
    return device.startswith("cuda") if isinstance(device, str) else type(device) is int


def _shape(arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, ...]:
    shape = options.get("size") or arguments
    if isinstance(shape, int):
        return (shape,)
    return (
        _shape((), {"size": shape[0]}) if len(shape) == 1 and not isinstance(shape[0], int) else tuple(map(int, shape))
    )


def _big_tensor(torch: Any, shape: tuple[int, ...], kind: Any, is_weight: bool) -> object | None:
    """Take what a new tensor needs; return it if it is big."""
    count = math.prod(shape)
    size = count * torch.empty(0, dtype=kind).element_size()
    if size >= BIG:
        GPU.take(size, torch.OutOfMemoryError)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
        return torch.frombuffer(mmap.mmap(-1, size, flags=flags), dtype=kind).reshape(shape)
    if is_weight and count >= WEIGHT_SIZE and kind == torch.bfloat16:
        GPU.take(int(size * WEIGHT_FACTOR), torch.OutOfMemoryError)
    return None


def _put_on_cpu(torch: Any) -> None:
    """Have every thread's calls of torch go to the CPU, and count what they take."""
    from torch.overrides import TorchFunctionMode

    class OnCpu(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, _: object, args: Any = (), kwargs: Any = None) -> object:
            options = dict(kwargs or {})
            options.pop("pin_memory", None)
            if function in (torch.Tensor.pin_memory, torch.Tensor.cuda):
                return args[0]
            if function is torch.Tensor.to and len(args) > 1 and _is_cuda(torch, args[1]):
                args = (args[0], "cpu", *args[2:])
            asked = options.get("device")
            if _is_cuda(torch, asked):
                options["device"] = "cpu"
                if function in (torch.zeros, torch.empty):
                    kind = options.get("dtype") or torch.get_default_dtype()
                    is_weight = function is torch.empty and isinstance(asked, torch.device)
                    tensor = _big_tensor(torch, _shape(args, options), kind, is_weight)
                    if tensor is not None:
                        return tensor
            return function(*args, **options)

    OnCpu().__enter__()
    run = threading.Thread.run

    def run_on_cpu(thread: threading.Thread) -> None:
        with OnCpu():
            run(thread)

    threading.Thread.run = run_on_cpu  # type: ignore[method-assign]


def use_gloo(distributed: Any) -> None:
    """Have ranks talk by gloo where NCCL is asked for."""
    init, group = distributed.init_process_group, distributed.new_group

    def on_cpu(backend: object) -> object:
        return "gloo" if isinstance(backend, str) and "nccl" in backend else backend

    def init_process_group(backend: object = None, *rest: object, **options: object) -> object:
        for name in ("device_id", "pg_options"):
            options.pop(name, None)
        return init(on_cpu(backend), *rest, **options)

    def new_group(ranks: object = None, *rest: object, **options: object) -> object:
        for name in ("device_id", "pg_options"):
            options.pop(name, None)
        if "backend" in options:
            options["backend"] = on_cpu(options["backend"])
        return group(ranks, *rest, **options)

    distributed.init_process_group, distributed.new_group = init_process_group, new_group


def use_plain_collectives(module: Any) -> None:
    """Gather and scatter with what gloo has."""
    import torch

    def all_gather(self: Any, output: Any, given: Any) -> None:
        parts = list(output.view(-1).chunk(self.world_size))
        gathered = [torch.empty_like(given) for _ in parts]
        torch.distributed.all_gather(gathered, given.contiguous(), group=self.device_group)
        for part, tensor in zip(parts, gathered, strict=True):
            part.copy_(tensor.view(-1))

    def reduce_scatter(self: Any, output: Any, given: Any) -> None:
        total = given.clone()
        torch.distributed.all_reduce(total, group=self.device_group)
        output.copy_(total.view(-1).chunk(self.world_size)[self.rank_in_group].view_as(output))

    group = module.GroupCoordinator
    group.all_gather_into_tensor = group._all_gather_into_tensor = all_gather
    group.reduce_scatter_tensor = group._reduce_scatter_tensor = reduce_scatter


def _has_registry() -> bool:
    """Whether attention backends are in a registry, as from 0.5 on."""
    return importlib.util.find_spec("sglang.srt.layers.attention.attention_registry") is not None


def native_attention(runner: object) -> object:
    """Return attention in plain torch that can be captured."""
    from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend as Backend

    for name in (
        "init_cuda_graph_state",
        "init_forward_metadata_capture_cuda_graph",
        "init_forward_metadata_replay_cuda_graph",
        "init_forward_metadata_out_graph",
        "init_forward_metadata_in_graph",
    ):
        setattr(Backend, name, _do_nothing)
    Backend.get_cuda_graph_seq_len_fill_value = lambda _: 1
    return Backend(runner)


def use_native_attention(module: Any) -> None:
    """Use it whatever the flags ask for."""
    for name in ("fa3", "flashinfer", "triton"):
        module.ATTENTION_BACKENDS[name] = native_attention


def use_native_attention_0_4(module: Any) -> None:
    """Use it whatever the flags ask for, in releases without a registry."""
    if not _has_registry() and hasattr(module.ModelRunner, "_get_attention_backend_from_str"):
        module.ModelRunner._get_attention_backend_from_str = lambda runner, _: native_attention(runner)


def use_plain_operations(module: Any) -> None:
    """Use SGLang's own plain versions of its operations."""
    for name in ("MultiPlatformOp", "CustomOp"):
        if hasattr(module, name):
            getattr(module, name).dispatch_forward = lambda operation: operation.forward_native


def use_plain_fused(module: Any) -> None:
    """Use SGLang's own plain versions of its fused operations."""
    base = module.BaseFusedOp
    base._resolve_forward_method = lambda operation: operation.forward_native

    def forward(operation: Any, *given: object, backend: object = None, **options: object) -> object:
        del backend
        return operation.forward_native(*given, **options)

    base.forward = forward


def without_triton(module: Any) -> None:
    """Say that no Triton is there."""
    if not hasattr(module, "__path__"):  # a package hands its function on from ``common``
        module.support_triton = lambda _: False


def without_pynccl_and_triton(module: Any) -> None:
    """Say so where platforms have capabilities."""
    capabilities = module.CudaSRTPlatform.capabilities
    wanted = {"supports_triton": False, "supports_pynccl": False}
    if dataclasses.is_dataclass(capabilities) and not isinstance(capabilities, type):
        module.CudaSRTPlatform.capabilities = dataclasses.replace(capabilities, **wanted)
    else:
        import msgspec

        module.CudaSRTPlatform.capabilities = msgspec.structs.replace(capabilities, **wanted)


def _set(path: str, value: object) -> Callable[[ModuleType], None]:
    """Return a change that sets one name of a module, or of a class in it."""

    def change(module: ModuleType) -> None:
        owner, _, name = path.rpartition(".")
        setattr(getattr(module, owner) if owner else module, name, value)

    return change


AFTER: dict[str, Callable[[Any], None]] = {
    "torch": pretend_cuda,
    "torch.distributed": use_gloo,
    "sglang.srt.distributed.parallel_state": use_plain_collectives,
    "sglang.srt.layers.attention.attention_registry": use_native_attention,
    "sglang.srt.model_executor.model_runner": use_native_attention_0_4,
    "sglang.srt.layers.utils.multi_platform": use_plain_operations,
    "sglang.srt.custom_op": use_plain_operations,
    "sglang.kernels.fused_op": use_plain_fused,
    "sglang.srt.layers.dual_gemm": _set("DualGemm._select_mode", _do_nothing),
    "sglang.srt.mem_cache.memory_pool": _set("can_use_store_cache", lambda *_, **__: False),
    "sglang.srt.utils.common": without_triton,
    "sglang.srt.utils": without_triton,
    "sglang.srt.platforms.cuda": without_pynccl_and_triton,
}
