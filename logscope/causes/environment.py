"""What the launch runs in is not as it has to be: devices, drivers, packages, limits of the host, the network."""

from __future__ import annotations

from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import because, number, on_rank, quoted

ID = "environment"
_REMEDIES = {
    "no_device": "Check `nvidia-smi` inside the container, how it is given the devices, and CUDA_VISIBLE_DEVICES.",
    "device_unavailable": "Look with `nvidia-smi` for other processes, compute mode and ECC errors, for Xid in `dmesg`; reset it.",
    "driver": "Update the driver, or use a build for the CUDA version that the driver has.",
    "package": "Install it into the environment of the server, in the version that this release of SGLang names.",
    "compiler": "Install what it names: ninja (pip install ninja), a C++ compiler, or the CUDA toolkit (PATH, CUDA_HOME).",
    "compile_failed": "Look at the compiler's output below the line: nvcc or a header may be missing, or not fit torch's CUDA.",
    "disk_full": "Free the disk that the line or the traceback names; caches can be moved (HF_HOME, TRITON_CACHE_DIR, TMPDIR).",
    "host_limits": "Raise the limit, or give the permission, for the user that runs the server.",
    "connection": "See that the host is reachable from here; or use local files (--model-path with a folder, HF_HUB_OFFLINE=1).",
}


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis of something around the server that is missing or wrong."""
    if not case.tells(ID):
        return None
    kind = case.said.pattern.id.rpartition(".")[2]
    if kind == "device_ordinal":
        return _too_few_devices(case)
    if kind == "nccl_duplicate_device":
        return _same_device(case)
    if kind == "cpu_binding":
        return _too_few_nodes(case)
    module, package = case.said.string("module"), case.said.string("package")
    if kind == "package" and module:
        return Diagnosis(
            ID, f"the Python package {module.partition('.')[0]} is missing{on_rank(case)}", None, _REMEDIES[kind]
        )
    if kind == "package_version" and package:
        needed, found = case.said.string("needed"), case.said.string("found")
        sentence = f"{package} {found or 'is not installed'}{' is too old' if found else ''}, this release of SGLang needs {needed}"
        return Diagnosis(ID, sentence, None, f"Install {package} {needed} or later.")
    return Diagnosis(ID, because(case), None, _REMEDIES.get(kind, ""))


def _too_few_devices(case: Case) -> Diagnosis:
    ranks = number(case, "tp_size")
    wants = f"; tp_size is {ranks:g}" if ranks else ""
    remedy = (
        "Set --tp-size, --dp-size and --base-gpu-id to what CUDA_VISIBLE_DEVICES and the container show of devices."
    )
    return Diagnosis(ID, f"{_rank(case)} wants a device that is not there{wants}", None, remedy)


def _same_device(case: Case) -> Diagnosis:
    first, second = case.said.quantity("rank_a"), case.said.quantity("rank_b")
    which = f"ranks {first.value:g} and {second.value:g}" if first and second else "two ranks"
    remedy = (
        "Give each rank a device of its own: look at CUDA_VISIBLE_DEVICES (one device named twice, or the same ones for two processes), "
        "--base-gpu-id and --gpu-id-step."
    )
    return Diagnosis(ID, f"{which} use the same device: {quoted(case)}", None, remedy)


def _rank(case: Case) -> str:
    return case.root.rank.label if case.root.rank.tag else "a rank"


def _too_few_nodes(case: Case) -> Diagnosis:
    ranks, nodes = case.said.quantity("ranks"), case.said.quantity("numa_nodes")
    count = (
        f"{ranks.value:g} ranks, {nodes.value:g} NUMA node{'s' if nodes.value != 1 else ''}" if ranks and nodes else ""
    )
    sentence = f"the CPU has too few NUMA nodes for the ranks{f': {count}' if count else ''}, and SGLANG_CPU_OMP_THREADS_BIND is not set"
    less = f", or --tp-size {nodes.value:g}" if nodes else ""
    return Diagnosis(
        ID, sentence, None, f"Set SGLANG_CPU_OMP_THREADS_BIND to the cores of each rank (0-15|16-31){less}."
    )
