"""Launch logs made from facts: what SGLang would print, in the wordings of a release, with numbers by its plain formula.

The arithmetic is written out here and knows nothing of logscope's. Amounts are GiB but where a name says otherwise.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from made_args import args_text, command_text

GIB = 2**30
RELEASES = ("0.4.6.post5", "0.5.9", "0.5.13", "0.5.14", "0.5.23")


@dataclass(frozen=True)
class Draft:
    """A draft model: its weights over all ranks, the share of the target's layers it has, memory of its graphs."""

    model_gib: float = 16.0
    layer_share: float = 0.0125
    graph_gib: float = 0.25


@dataclass(frozen=True)
class Made:
    """The facts of a launch. ``free_gib``: free on an empty GPU before distributed init, which takes ``init_gib``.

    ``model_gib`` and ``token_bytes`` are of the whole model, 16 bits; ranks share both. ``extra_gib`` is weights nobody accounts for, by
    rank, and ``foreign_gib`` another process. ``jitter`` is added to all free memory. ``between_gib`` goes on every rank between the
    weights and the pools (LoRA buffers), and a line states what is left then if ``shows_between``.
    """

    release: str = "0.5.9"
    tp: int = 8
    fraction: float | None = 0.88
    default_fraction: float = 0.857
    free_gib: float = 95.0
    init_gib: float = 0.5
    model_gib: float = 320.0
    token_bytes: int = 327_680
    page_size: int = 1
    max_total_tokens: int | None = None
    dtype: str = "bfloat16"
    kv_dtype: str = "auto"
    quantization: str | None = None
    draft: Draft | None = None
    graph_gib: float = 1.4
    graph_bs: int = 128
    disable_cuda_graph: bool = False
    attention_backend: str = "fa3"
    extra_gib: Mapping[int, float] = field(default_factory=dict)
    foreign_gib: Mapping[int, float] = field(default_factory=dict)
    load_s: float = 60.0
    capture_s: float = 20.0
    env: Mapping[str, str] = field(default_factory=dict)
    shows_args: bool = True
    shows_command: bool = True
    port_is_taken: bool = False
    port: int = 30000
    seed: int = 7
    start: str = "2026-01-05 10:00:00"
    jitter: float = 0.0
    between_gib: float = 0.0
    shows_between: bool = False
    extra_args: Mapping[str, object] = field(default_factory=dict)
    nccl: str = "2.27.3"

    @property
    def fraction_in_force(self) -> float:
        return self.default_fraction if self.fraction is None else self.fraction

    @property
    def counts_draft(self) -> bool:
        return self.draft is not None and self.release in ("0.5.14", "0.5.23")

    @property
    def weights(self) -> list[float]:
        """The target's weights on each rank."""
        scale = (2.0 if self.dtype == "float32" else 1.0) * (0.5 if self.quantization else 1.0)
        return [self.model_gib * scale / self.tp + self.extra_gib.get(rank, 0.0) for rank in range(self.tp)]

    @property
    def total(self) -> list[float]:
        """T of each rank."""
        return [
            self.free_gib - self.init_gib - self.foreign_gib.get(rank, 0.0) + self.jitter for rank in range(self.tp)
        ]

    @property
    def avail(self) -> list[float]:
        """A of each rank: free when the target's pool is sized."""
        drafted = self.draft.model_gib / self.tp if self.draft and self.counts_draft else 0.0
        taken = drafted + self.between_gib
        return [total - used - taken for total, used in zip(self.total, self.weights, strict=True)]

    @property
    def cell(self) -> float:
        """Bytes per token of the target on one rank."""
        return self.token_bytes / self.tp * (0.5 if self.kv_dtype == "fp8_e4m3" else 1.0)

    @property
    def charged(self) -> float:
        """Bytes that the budget pays for a token."""
        return self.cell * (1 + self.draft.layer_share) if self.draft and self.counts_draft else self.cell

    @property
    def rest(self) -> float:
        """The budget: negative where the launch fails."""
        return min(self.avail) - min(self.total) * (1 - self.fraction_in_force)

    @property
    def tokens(self) -> int:
        """What the pool holds; what the budget comes to where it is negative."""
        count = math.floor(self.rest * GIB / self.charged)
        if self.max_total_tokens is not None:
            count = min(count, self.max_total_tokens)
        return count // self.page_size * self.page_size


def log_text(made: Made) -> str:
    """Return the log of a launch, from the command to ready or death."""
    return "".join(f"{line}\n" for line in _Writer(made).lines())


class _Writer:
    """Writes one log: keeps the clock and what is free on each rank."""

    def __init__(self, made: Made) -> None:
        self.made = made
        self.chance = random.Random(made.seed)  # noqa: S311 # not for secrets
        self.clock = datetime.datetime.fromisoformat(made.start)
        self.free = list(made.total)
        self.new = made.release in ("0.5.14", "0.5.23")

    def lines(self) -> Iterator[str]:
        made, draft = self.made, self.made.draft
        if made.shows_command:
            yield command_text(made)
        if made.shows_args:
            yield self.say("server_args=" + args_text(made))
        yield from self.init(made.init_gib)
        yield from self.load(made.weights, "LlamaForCausalLM", made.load_s)
        if draft and self.new:
            yield from self.load([draft.model_gib / made.tp] * made.tp, "LlamaForCausalLMEagle", 2.0)
        yield from self.between()
        if made.tokens <= 0:
            yield from self.die(self.no_memory())
            return
        yield from self.pool(made.cell)
        if draft and self.new:
            yield from self.pool(made.cell * draft.layer_share)
        if not made.disable_cuda_graph:
            if min(self.free) < made.graph_gib:
                yield from self.capture_fails()
                return
            yield from self.graphs("target verify" if draft else "target decode", made.graph_gib, made.capture_s)
        if draft and not self.new:
            yield from self.init(0.0)
            yield from self.load([draft.model_gib / made.tp] * made.tp, "LlamaForCausalLMEagle", 2.0)
            yield from self.pool(made.cell * draft.layer_share)
        if draft and not made.disable_cuda_graph:
            yield from self.graphs("draft decode", draft.graph_gib, 2.0)
        yield from self.serve()

    def serve(self) -> Iterator[str]:
        made = self.made
        left = "" if made.release == "0.4.6.post5" else f", available_gpu_mem={self.free[0]:.2f} GB"
        yield self.say(
            f"max_total_num_tokens={made.tokens}, chunked_prefill_size=8192, max_prefill_tokens=16384, "
            f"max_running_requests=256, context_len=32768{left}", 0,
        )  # fmt: skip
        if made.release == "0.5.23":
            graphs = f"cuda_graph={{prefill=0.00, decode={made.capture_s:.2f}}}"
            times = f"load_weight={made.load_s:.2f}, kv_cache_allocation=0.37, scheduler_e2e=99.00, {graphs}"
            yield self.say(f"Engine startup timings (s): {times}, tokenizer_e2e=120.00")
        steps = (
            f"Started server process [{4000 + made.seed}]",
            "Waiting for application startup.",
            "Application startup complete.",
        )
        yield from (self.say(f"INFO:     {step}") for step in steps)
        if made.port_is_taken:
            why = f"error while attempting to bind on address ('127.0.0.1', {made.port}): address already in use"
            yield self.say(f"ERROR:    [Errno 98] {why}")
            yield self.say("INFO:     Waiting for application shutdown.")
            return
        yield self.say(f"INFO:     Uvicorn running on http://127.0.0.1:{made.port} (Press CTRL+C to quit)")
        self.wait(2)
        yield self.say("The server is fired up and ready to roll!")

    def say(self, message: str, rank: int | None = None) -> str:
        tag = "" if rank is None or self.made.tp == 1 else f" TP{rank}"
        return f"[{self.clock:%Y-%m-%d %H:%M:%S}{tag}] {message}"

    def wait(self, seconds: float) -> None:
        self.clock += datetime.timedelta(seconds=seconds)

    def ranks(self) -> list[int]:
        """Return the ranks in the order in which they speak this time."""
        return self.chance.sample(range(self.made.tp), self.made.tp)

    def init(self, taken: float) -> Iterator[str]:
        release = self.made.release
        self.wait(1)
        begin = "Init parallel begin." if release == "0.5.23" else "Init torch distributed begin."
        yield from (self.say(begin, rank) for rank in self.ranks())
        self.wait(4)
        yield self.say(f"sglang is using nccl=={self.made.nccl}", 0)
        elapsed = "" if release == "0.4.6.post5" else "elapsed=4.02 s, "
        for rank in self.ranks():
            if release == "0.5.23":
                yield self.say("Init parallel ends. elapsed=4.02 s", rank)
                yield self.say("Memory baseline taken. mem usage=0.00 GB", rank)
            else:
                yield self.say(f"Init torch distributed ends. {elapsed}mem usage={taken:.2f} GB", rank)

    def load(self, taken: list[float], kind: str, seconds: float) -> Iterator[str]:
        release = self.made.release
        self.wait(1)
        for rank in self.ranks():
            yield self.say(f"Load weight begin. avail mem={self.free[rank]:.2f} GB", rank)
        self.wait(seconds)
        elapsed = "" if release == "0.4.6.post5" else f"elapsed={seconds:.2f} s, "
        dtype = f"dtype=torch.{self.made.dtype}, " if release in ("0.4.6.post5", "0.5.9") else ""
        for rank in self.ranks():
            self.free[rank] -= taken[rank]
            left = f"avail mem={self.free[rank]:.2f} GB, mem usage={taken[rank]:.2f} GB."
            yield self.say(f"Load weight end. {elapsed}type={kind}, {dtype}{left}", rank)

    def between(self) -> Iterator[str]:
        made = self.made
        if not made.between_gib:
            return
        for rank in self.ranks():
            self.free[rank] -= made.between_gib
            if made.shows_between:
                ref = "LoRARef(lora_id=5f0c2d, lora_name=sql, lora_path=/models/lora, pinned=False)"
                yield self.say(f"LoRA adapter loading completes: {ref}. avail mem={self.free[rank]:.2f} GB", rank)

    def pool(self, cell: float) -> Iterator[str]:
        made = self.made
        size = (made.tokens + made.page_size) * cell / GIB
        torch_dtype = "torch.float8_e4m3fn" if made.kv_dtype == "fp8_e4m3" else "torch.bfloat16"
        dtype = "" if made.release in ("0.4.6.post5", "0.5.9") else f"dtype: {torch_dtype}, "
        if made.release == "0.5.9":
            yield self.say(f"Using KV cache dtype: {torch_dtype}", 0)
        for rank in self.ranks():
            self.free[rank] -= size
            sizes = f"K size: {size / 2:.2f} GB, V size: {size / 2:.2f} GB"
            yield self.say(f"KV Cache is allocated. {dtype}#tokens: {made.tokens}, {sizes}", rank)
            yield self.say(f"Memory pool end. avail mem={self.free[rank]:.2f} GB", rank)

    def capture_begins(self, what: str) -> Iterator[str]:
        sizes = [bs for bs in (1, 2, 4, *range(8, 1024, 8)) if bs <= self.made.graph_bs]
        own = "" if what.startswith("target") else "draft "
        shown = f"backend=full, num_tokens_per_bs=1, bs={sizes}, "
        if self.made.release == "0.5.23":
            shown = "backend=full, num_tokens_per_req=1, "
        old = f"Capture {own}cuda graph begin. This can take up to several minutes. "
        begin = f"Capture {what} CUDA graph begin. {shown}" if self.new else old
        for rank in self.ranks():
            yield self.say(f"{begin}avail mem={self.free[rank]:.2f} GB", rank)
        if not self.new and not own:
            yield self.say(f"Capture cuda graph bs {sizes}", 0)

    def graphs(self, what: str, taken: float, seconds: float) -> Iterator[str]:
        yield from self.capture_begins(what)
        self.wait(seconds)
        own = "" if what.startswith("target") else "draft "
        shown = "bs=[1, 2, 4, 8], " if self.made.release == "0.5.23" else ""
        for rank in self.ranks():
            self.free[rank] -= taken
            free, used = f"avail mem={self.free[rank]:.2f} GB.", f"mem usage={taken:.2f} GB"
            if self.new:
                yield self.say(f"Capture {what} CUDA graph end. {shown}elapsed={seconds:.2f} s, {used}, {free}", rank)
            else:
                yield self.say(f"Capture {own}cuda graph end. Time elapsed: {seconds:.2f} s. {used}. {free}", rank)

    def capture_fails(self) -> Iterator[str]:
        yield from self.capture_begins("target decode")
        self.wait(5)
        held = self.made.free_gib + 1 - 0.85
        yield from self.die(
            f"Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
            f"{held + 0.85:.2f} GiB of which 0.85 GiB is free. Including non-PyTorch memory, this process has {held:.2f} GiB memory "
            "in use. Of the allocated memory 80.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated."
        )

    def no_memory(self) -> str:
        made = self.made
        if self.new:
            least = 1 - min(made.avail) / min(made.total)
            return (
                f"ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static={made.fraction_in_force}. "
                f"Raise --mem-fraction-static above {math.ceil(least * 1000) / 1000:.3f} (minimum viable = 1 - available/pre = "
                f"{least:.4f}). If using speculative decoding, draft weights are now counted."
            )
        said = {
            "0.4.6.post5": "",
            "0.5.9": f" Current value: self.server_args.mem_fraction_static={made.fraction_in_force}",
        }
        value = said.get(made.release, f" Current value: mem_fraction_static={made.fraction_in_force}")
        return f"RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.{value}"

    def die(self, message: str) -> Iterator[str]:
        for rank in self.ranks():
            yield self.say("Scheduler hit an exception: Traceback (most recent call last):", rank)
            yield '  File "/opt/venv/sglang/srt/managers/scheduler.py", line 100, in run_scheduler_process'
            yield "    scheduler = Scheduler("
            yield message
            yield ""
        yield self.say("Received sigquit from a child process. It usually means the child failed.")
