"""What releases 0.4 get wrong between two ranks on a CPU: what is gathered is not joined along the right dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def join_gathered(module: Any) -> None:
    """Gather as on a GPU."""
    import torch

    def all_gather(self: Any, given: Any, dim: int = -1, *_: object, **__: object) -> Any:
        if self.world_size == 1:
            return given
        gathered = [torch.empty_like(given) for _ in range(self.world_size)]
        torch.distributed.all_gather(gathered, given.contiguous(), group=self.device_group)
        return torch.cat(gathered, dim)

    module.GroupCoordinator.all_gather = all_gather


AFTER: dict[str, Callable[[Any], None]] = {"sglang.srt.distributed.parallel_state": join_gathered}
