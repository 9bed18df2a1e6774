"""A kernel does not run on this device: it was not built for it, asks for more than it has, or knows no such shape."""

from __future__ import annotations

from logscope.causes._place import beside_capture, hint_of_capture
from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import because, on_rank, settings

ID = "kernel_unsupported"
_BACKENDS = ("attention_backend", "moe_runner_backend", "quantization")


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis of a kernel that cannot run."""
    if not case.tells(ID):
        return None
    required, limit = case.said.quantity("required"), case.said.quantity("limit")
    if required and limit:
        resource = case.said.string("resource") or ""
        unit = "bytes of " if "memory" in resource else ""
        what = (
            f"a kernel{on_rank(case)} needs {required.value:,.0f} {unit}{resource}, the device has {limit.value:,.0f}"
        )
    else:
        what = because(case)
    free, evidence = beside_capture(case)
    remedy = (
        "Install builds of torch, sgl-kernel and flashinfer for this device."
        if case.said.pattern.id == "failure.kernel_image"
        else f"Choose another backend for the part that the traceback names ({_flags(case)})."
    )
    now = settings(case, *_BACKENDS)
    remedy += f" In force: {now}." if now else ""
    return Diagnosis(ID, f"{what}{free}", None, remedy, evidence=evidence, findings=hint_of_capture(case))


def _flags(case: Case) -> str:
    known = [name for name in _BACKENDS if name in case.launch.args.values]
    return ", ".join(f"--{name.replace('_', '-')}" for name in known or _BACKENDS[:1])
