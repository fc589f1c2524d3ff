"""What a target is: everything that is particular to one mixer.

A block rectifies rows of its input lanes (x̂ = silu(conv(row))) and feeds the results to its state: what is
written (x̂ of the channel itself), the step Δ, the columns B and C. The gate z and the last linear map see
lanes. Targets differ in what may stand at Δ, B and C, and so in how a circuit must be rewritten to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

import compiler.gadgets.core  # noqa: F401 (registers the gadgets of the language's own operations)
from compiler.gadgets.gadget import Gadget, gadget_of
from compiler.language.stream import Stream
from compiler.lowering.fitter import Fitter
from compiler.lowering.ports import Ports
from compiler.targets.refuse import refuse

if TYPE_CHECKING:
    from torch import Tensor, nn

    from compiler.exactness.read_back import Held
    from compiler.ir.block import SelectiveBlock
    from compiler.language.circuit import Circuit
    from compiler.language.operations import Operation
    from compiler.layout import Emission
    from compiler.runtime.block import Block
    from compiler.runtime.inside import Inside
    from compiler.targets.family import Family
    from compiler.targets.sizes import Sizes

Rewriting: TypeAlias = Callable[[Any, Stream, tuple[Stream, ...], Fitter], Stream | None]  # of a target
KERNEL_COLUMNS = 256  # d_state, at most, of mamba_ssm's CUDA kernels
KERNEL_WIDTH = 8  # causal_conv1d reads so many channels of a position at once, from rows that are whole multiples


class Target(Ports):
    """One mixer. Subclasses set the ports and print blocks; the rest has defaults.

    channels_last: whether its module hands the convolution a position's channels side by side, of which the CUDA kernel
        takes whole `KERNEL_WIDTH`s.
    folder:  the package that prints its blocks, in `emit.py`, and reads them back, in `read.py`.
    mixer:   the name of its module's class in `mixer.py` there, where no library has one.
    lacks:   operations that cannot be had where `rewrite` has no other form of them, each with the reason.
    rewritings: for operations that it computes of others, what `rewrite` does.
    gadgets: gadgets of its own, for operations that it computes differently.
    printed_by: the targets whose modules hold its blocks, the usual one first; () stands for itself alone.
    """

    channels_last: ClassVar[bool] = False
    folder: ClassVar[str]
    mixer: ClassVar[str]
    n_groups: int = 1
    lacks: ClassVar[Mapping[type[Operation], str]] = {}
    rewritings: ClassVar[Mapping[type[Operation], Rewriting]] = {}
    gadgets: ClassVar[Mapping[type[Operation], Gadget]] = {}
    printed_by: ClassVar[tuple[str, ...]] = ()

    def in_groups(self, n_groups: int) -> Target:
        """The same mixer with so many groups of B and C; ValueError where it has but one."""
        if n_groups != 1:
            raise ValueError(f"n_groups is {n_groups}, and {self.name} has one group of B and C; mamba2 takes several")
        return self

    def __repr__(self) -> str:
        return f"<target {self.name}>"

    def gadget(self, operation: Operation) -> Gadget | None:
        """How its blocks compute an operation; None where they do not (sources, linear maps, derived operations)."""
        return self.gadgets.get(type(operation)) or gadget_of(operation)

    def needed_gadget(self, operation: Operation) -> Gadget:
        """The gadget of an operation that its blocks compute; NotImplementedError where there is none."""
        gadget = self.gadget(operation)
        if gadget is None:
            raise NotImplementedError(f"no gadget computes {operation.symbol}; register one in compiler.gadgets")
        return gadget

    # Fitting a circuit --------------------------------------------------------------------------------

    def rewrite(self, stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream | None:
        """The operation in others that fit, over fitted inputs; None where its gadget takes it as it is.

        Raises NotImplementedError with the reason where there is no such form.
        """
        rule = self.rewritings.get(type(stream.operation))
        return None if rule is None else rule(self, stream, inputs, fitter)

    def misfits(self, circuit: Circuit) -> Iterator[tuple[Stream, str]]:
        """What is left in a fitted circuit that a block cannot compute after all, with the reason."""
        return iter(())

    # Printing a block ---------------------------------------------------------------------------------

    def _part(self, name: str) -> Any:
        """A module of its folder, loaded when the first block is printed or read."""
        return import_module(f"{self.folder}.{name}")

    @property
    def _mixer(self) -> Any:
        return getattr(self._part("mixer"), self.mixer)

    def without_place(self, block: SelectiveBlock) -> Iterator[str]:
        """What the block has, in words, that the module has no place for."""
        raise NotImplementedError

    def verify(self, block: SelectiveBlock) -> None:
        """Raise CompileError where the block has something that the module has no place for."""
        refuse(self.name, self.without_place(block))

    def sizes(self, block: SelectiveBlock, n_lanes: int) -> Sizes:
        """The least sizes of a module that holds the block."""
        return self._part("emit").sizes(block, n_lanes)

    def sizes_of(self, fields: Mapping[str, int]) -> Sizes:
        """The sizes of a module by name, as a saved config holds them; TypeError for others than it has."""
        raise TypeError(f"{self.name} has no saved sizes")

    def packaged(self, size: Sizes, block: SelectiveBlock) -> Sizes:
        """The least sizes that the module's class can have: d_inner is no narrower than d_model."""
        return size.with_inner(max(size.d_inner, size.d_model))

    def emit(self, block: SelectiveBlock, size: Sizes, lane_in: np.ndarray, lane_out: np.ndarray) -> Emission:
        """The tensors of a module of this size (float32, by the names of its state dict) and their layout.

        lane_in, lane_out: (L,) the coordinate of d_model that carries each lane before and after the block,
        −1 where it is not there. Raises CompileError for what `verify` refuses.
        """
        self.verify(block)
        return self._part("emit").emit(block, size, lane_in, lane_out)

    def read(self, tensors: Mapping[str, Tensor], size: Sizes) -> Held:
        """What the tensors of a module of this size compute, from the module's equations and not from `emit`."""
        return self._part("read").read(tensors)

    def printed(self, block: SelectiveBlock, size: Sizes, lane_in: np.ndarray, lane_out: np.ndarray) -> Emission:
        """`emit`, after its tensors were read back and found to hold the block; Miscompiled where they do not."""
        from compiler.exactness.read_back import check_read_back

        emission = self.emit(block, size, lane_in, lane_out)
        check_read_back(self.read(emission.tensors, size), block, lane_in, lane_out)
        return emission

    def module(self, size: Sizes, index: int) -> nn.Module:
        """An empty module of this size (parameters on the meta device), block number `index` of its stack."""
        import torch

        of: Any = size  # of a class of its own, with d_conv
        with torch.device("meta"):
            return self._mixer(of.d_model, of.d_inner, of.d_state, of.d_conv)

    def convolved(self, size: Sizes) -> int:
        """How many channels the convolution of a module of this size has."""
        return size.d_inner

    def projected(self, size: Sizes) -> int:
        """How many rows in_proj has: the convolution's channels are read inside of them."""
        return 2 * size.d_inner

    def runs(self, module: nn.Module) -> bool:
        """Whether a module is its mixer."""
        return isinstance(module, self._mixer)

    def state_shape(self, module: Block) -> tuple[int, ...]:
        """The shape of what the module carries from one position to the next, for one sequence."""
        return module.d_inner, module.d_state

    def advance(self, module: Block, u: Tensor, window: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The next positions u (b, l, d_model) through a module: its output, and its window and state after them."""
        return module.chunk(u, window, state)

    def inside(self, module: Block, u: Tensor) -> Inside:
        """What a module holds between its projections, of its input u (b, l, d_model); NotImplementedError where
        that is not said of this mixer.
        """
        raise NotImplementedError(f"{self.name} does not say what its module holds inside")

    def seats(self, block: SelectiveBlock, module: nn.Module | Sizes) -> np.ndarray:
        """Where each channel of the block stands in d_inner of a module that holds it, or of one of this size."""
        return np.arange(len(block.channels.names))

    def held(self, block: SelectiveBlock, module: Block, state: Tensor) -> Tensor:
        """(channels, columns) of the block: its part of a state, shaped as `state_shape` says, of a module that holds
        it.
        """
        return state.flatten(0, -2)[self.seats(block, module)]

    def state_entries(self, block: SelectiveBlock) -> int:
        """Numbers that the block carries from one position to the next: channels that ever write, times columns."""
        return int(block.channels.writes.sum()) * block.d_state

    @property
    def family(self) -> Family | None:
        """The language models that its blocks can be packaged as; None where no library has one."""
        return None
