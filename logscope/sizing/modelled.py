"""Which launches have pools that their fraction does not explain: what sizes its pools by other rules."""

from __future__ import annotations

from logscope.model import Launch

OWN_FORMULA = ("kv_cache.dsv4", "kv_cache.unified", "kv_cache.mlx", "kv_cache.swa_ring")
_HEADROOM = ("0.4.3.post3", "0.5.7")
_FP8_ROWS = ("0.5.3", "0.5.17")
_WIDE_WINDOWS = ("0.5.7", "0.5.8")


def not_modelled(launch: Launch) -> list[str]:
    """Return why the pools of a launch do not tell its fraction, for what has a formula of its own."""
    ids = {event.pattern.id for event in launch.events}
    notes = []
    if any(name.startswith(OWN_FORMULA) for name in ids):
        notes.append("this model's pools have a formula of their own: the fraction is not inferred from them")
    speculative = launch.args.values.get("speculative_algorithm")
    if speculative and launch.releases.overlaps(*_HEADROOM):
        notes.append(
            "the pool has speculative headroom beyond the budget (to 0.5.6): the fraction is not inferred from it"
        )
    if _is_sparse(launch) and _has_fp8_cache(launch) and launch.releases.overlaps(*_FP8_ROWS):
        notes.append(
            "FP8 pools of DSA models are larger than what is charged for them (to 0.5.16): the fraction is not inferred"
        )
    windows = [
        e
        for e in launch.events
        if "swa" in (e.string("label") or "").lower() or e.pattern.id.startswith("kv_cache.swa")
    ]
    if windows and launch.releases.overlaps(*_WIDE_WINDOWS):
        notes.append(
            "the pools of sliding-window models may be larger than the budget (0.5.7): the fraction is not inferred"
        )
    return notes


def _is_sparse(launch: Launch) -> bool:
    models = {event.string("model_type") or "" for event in launch.events}
    reasons = [e.string("reason") or "" for e in launch.events if e.pattern.id == "server_args.adjusted_page_size"]
    return (
        any("V32" in model or "Dsa" in model for model in models)
        or any("DSA" in reason or "NSA" in reason for reason in reasons)
        or any(event.pattern.id == "server_args.adjusted_dsa_backend" for event in launch.events)
    )


def _has_fp8_cache(launch: Launch) -> bool:
    printed = [event.string("dtype") or "" for event in launch.events if event.pattern.phase == "kv_cache"]
    return any("fp8" in text or "float8" in text for text in (*printed, str(launch.args.values.get("kv_cache_dtype"))))
