"""The device reports an error: an illegal access, a failed launch, an assertion in a kernel. It is not about the amount of memory."""

from __future__ import annotations

from logscope.causes._place import beside_capture, hint_of_capture
from logscope.causes._types import Case, Diagnosis
from logscope.causes._words import argument, on_rank, quoted

ID = "cuda_error"
_BLOCKING = {"CUDA": "CUDA_LAUNCH_BLOCKING", "HIP": "AMD_SERIALIZE_KERNEL", "NPU": "ASCEND_LAUNCH_BLOCKING"}


def diagnose(case: Case) -> Diagnosis | None:
    """Return the diagnosis of an error of the device."""
    if not case.tells(ID):
        return None
    error, device = case.said.string("error"), case.said.string("device_type") or "CUDA"
    what = f"{device} error: {error}" if error else quoted(case)
    free, evidence = beside_capture(case)
    sentence = f"{what.partition('. ')[0].rstrip('. ')}{on_rank(case)}{free}"
    return Diagnosis(ID, sentence, None, _remedy(case, device), evidence=evidence, findings=hint_of_capture(case))


def _remedy(case: Case, device: str) -> str:
    if "all_reduce" in case.message and argument(case, "disable_custom_all_reduce") is not True:
        return "Start with --disable-custom-all-reduce: the error is of that kernel."
    name = _BLOCKING.get(device, _BLOCKING["CUDA"])
    command = case.launch.command
    if command is not None and name in command.env:
        return "The traceback names the kernel, since kernels were waited for."
    value = "3" if device == "HIP" else "1"
    return f"It may have happened in an earlier kernel: start once with {name}={value}, and the traceback names the right one."
