"""Gated activations."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name


class SiluAndMul(torch.nn.Module):
    """SiLU of the first half, times the second."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor half as wide."""
        half = x.shape[-1] // 2
        return F.silu(x[..., :half]) * x[..., half:]


class GeluAndMul(torch.nn.Module):
    """GELU of the first half, times the second."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor half as wide."""
        half = x.shape[-1] // 2
        return F.gelu(x[..., :half], approximate=self.approximate) * x[..., half:]
