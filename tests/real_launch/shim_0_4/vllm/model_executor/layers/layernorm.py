"""Normalisation."""

from __future__ import annotations

import torch


class RMSNorm(torch.nn.Module):
    """Root mean square normalisation, with an optional residual that is added first and returned."""

    def __init__(self, hidden_size: int, eps: float = 1e-6, **_: object) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(
        self, x: torch.Tensor, residual: torch.Tensor | None = None
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Return the normalised tensor, and the sum if a residual came in."""
        if residual is not None:
            x = x + residual
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        normalised = (wide * scale).to(x.dtype) * self.weight
        return normalised if residual is None else (normalised, x)


GemmaRMSNorm = RMSNorm
