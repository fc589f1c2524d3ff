"""Where a model is read and changed: a module's input or output, as numbers that methods can compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from compiler.targets.family import Family

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
    found: dict[int, torch.Tensor] = {}

    def keep(values: torch.Tensor, i: int) -> torch.Tensor:
        found[i] = values.detach()
        return values

    with ExitStack() as hooks, torch.no_grad():
        for i, site in enumerate(sites):
            hooks.enter_context(site.changed(model, partial(keep, i=i)))
        model(ids, use_cache=False)
    return [found[i] for i in range(len(sites))]


def stream_after(family: Family, blocks: int, width: int) -> Site:
    """The residual stream behind so many blocks."""
    return Site(family.stream_name(blocks), False, width)


def read_by(norm: str, width: int) -> Site:
    """What a block, or the head, reads of the residual stream: the input of its norm, named by its weight."""
    return Site(norm.removesuffix(".weight"), True, width)


def channels_of(family: Family, layer: int, width: int) -> Site:
    """The channels of a block, as out_proj reads them."""
    return Site(family.output_name(layer).removesuffix(".weight"), True, width)
