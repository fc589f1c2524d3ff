"""Where a model is read and changed: a module's input or output, as numbers that methods can compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

Change = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Site:
    """A place in a model. path: of the module; incoming: whether its input is meant, or its output; width:
    coordinates."""

    path: str
    incoming: bool
    width: int

    @contextmanager
    def changed(self, model: Any, change: Change) -> Iterator[None]:
        """The model with what stands here, (n, time, width), put through `change`."""
        module = model.get_submodule(self.path)
        if self.incoming:
            handle = module.register_forward_pre_hook(lambda m, given: (change(given[0]), *given[1:]))
        else:
            handle = module.register_forward_hook(lambda m, given, out: _put(out, change))
        try:
            yield
        finally:
            handle.remove()

    def read(self, model: Any, ids: torch.Tensor) -> torch.Tensor:
        """(n, time, width) on these inputs."""
        return read_all(model, [self], ids)[0]


def _put(out: Any, change: Change) -> Any:
    return (change(out[0]), *out[1:]) if isinstance(out, tuple) else change(out)


def read_all(model: Any, sites: Sequence[Site], ids: torch.Tensor) -> list[torch.Tensor]:
    """What stands at several sites in one run."""
    found: list[torch.Tensor] = []

    def keep(values: torch.Tensor) -> torch.Tensor:
        found.append(values.detach())
        return values

    with ExitStack() as hooks, torch.no_grad():
        for site in sites:
            hooks.enter_context(site.changed(model, keep))
        model(ids, use_cache=False)
    return found


def stream_after(blocks: int, width: int) -> Site:
    """The residual stream behind so many blocks."""
    return Site(f"backbone.layers.{blocks - 1}", False, width)


def channels_of(layer: int, width: int) -> Site:
    """The channels of a block, as out_proj reads them."""
    return Site(f"backbone.layers.{layer}.mixer.out_proj", True, width)
