"""What SGLang's own functions answer: the tokens of a launch, and the default fraction."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from logscope.budget import Launch, since
from logscope.units import GIB

from .budget_stand_ins import Flags, budget_names, make_runner
from .budget_world import Runner, Stop, cut_classes, cut_constants, cut_functions, find_file

BUDGET_PLACES = (
    "managers/router/model_runner.py",
    "managers/controller/model_runner.py",
    "model_executor/model_runner.py",
    "model_executor/model_runner_kv_cache_mixin.py",
    "mem_cache/kv_cache_configurator.py",
)
FRACTION_PLACES = ("arg_groups/memory_hook.py", "server_args.py")
BUDGET_FUNCTIONS = (
    *("profile_max_num_token", "init_memory_pool", "get_cell_size_per_token", "handle_max_mamba_cache"),
    *("set_num_token_hybrid", "set_num_tokens_hybrid_swa", "_resolve_hybrid_swa_tokens", "_resolve_token_capacity"),
    *("_resolve_memory_pool_config", "_resolve_max_num_reqs", "_calculate_mamba_ratio", "_profile_available_bytes"),
    *("_apply_token_constraints", "_handle_max_mamba_cache", "config_from_budget", "resolve_max_num_reqs"),
)
CONFIGURATORS = ("MemoryPoolConfigurator", "DefaultPoolConfigurator", "HybridSWAPoolConfigurator")


@dataclass(frozen=True, slots=True)
class Answer:
    """What SGLang's functions give. ``raised``: the launch fails with this error before a number is there."""

    tokens: int | None = None
    full: int | None = None
    window: int | None = None
    states: int | None = None
    draft: int | None = None
    requests: int | None = None
    raised: str | None = None


def sglang_tokens(root: Path, release: str, launch: Launch, flags: Flags) -> Answer:
    """Run the sizing of a release on a launch whose A and T are exact."""
    path = find_file(
        root,
        "_profile_available_bytes" if since(release, "0.5.11") else "profile_max_num_token",
        BUDGET_PLACES[::-1],
    )
    names = budget_names(launch, flags, release)
    runner = make_runner(launch, flags, names)
    cut_constants(path, names)
    owner = "KVCacheConfigurator" if "configurator" in path.name else "ModelRunner"
    runner._functions = cut_functions(path, names, lambda name: name in BUDGET_FUNCTIONS, owner)
    names.update(cut_functions(path, names, lambda name: name == "calculate_mla_kv_cache_dim"))
    if since(release, "0.5.11"):
        pools = root / "sglang/srt/model_executor/pool_configurator.py"
        cut_classes(pools, names, CONFIGURATORS)
        wanted = ("create_memory_pool_configurator", "_dflash_draft_cell_size", "_get_dsa_cache_layer_ids")
        cut_functions(pools, names, lambda name: name in wanted)
    total = launch.total.low / (GIB if since(release, "0.1.17") else 1)  # bytes before
    try:
        if since(release, "0.5.10"):
            config = runner._resolve_memory_pool_config(total)
            return _from_config(config, runner)
        _call_init(runner, total, launch)
    except Stop:
        pass
    except (RuntimeError, ValueError) as error:
        if runner.max_total_num_tokens is None and runner.max_total_num_token is None:
            return Answer(raised=str(error).split(".")[0])
    return _from_runner(runner)


def _call_init(runner: Runner, total: float, launch: Launch) -> None:
    parameters = inspect.signature(runner._functions["init_memory_pool"]).parameters
    given: dict[str, Any] = {
        "max_num_reqs": launch.max_running_requests,
        "max_total_tokens": launch.max_total_tokens,
        "server_args": runner.server_args,
    }
    runner.init_memory_pool(total, **{name: value for name, value in given.items() if name in parameters})


def _from_config(config: Any, runner: Runner) -> Answer:
    return Answer(
        config.max_total_num_tokens,
        config.full_max_total_num_tokens,
        config.swa_max_total_num_tokens,
        runner.server_args.max_mamba_cache_size if runner.mambaish_config else None,
        None,
        config.max_running_requests,
    )


def _from_runner(runner: Runner) -> Answer:
    tokens = runner.max_total_num_tokens if runner.max_total_num_tokens is not None else runner.max_total_num_token
    return Answer(
        tokens,
        runner.full_max_total_num_tokens,
        runner.swa_max_total_num_tokens,
        runner.server_args.max_mamba_cache_size if runner.mambaish_config else None,
        runner.server_args.draft_runner_cache_size,
        None,
    )
