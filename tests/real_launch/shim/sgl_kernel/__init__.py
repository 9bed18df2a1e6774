"""Stands for SGLang's CUDA kernels."""

from __future__ import annotations

from stand_in import stand_in_for

__version__ = "99.0.0"
__path__: list[str] = []
__getattr__ = stand_in_for(__name__)
