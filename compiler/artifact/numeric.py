"""Circuits over numbers as models: a bare stack that takes float lanes instead of tokens, in memory and as files.

The lanes, in order: the numbers of each input stream that the circuit reads, and the constant `one`, which the
packing fills in. Everything else (blocks, residual, head) is `package.bare`. No library has a class for such a model,
so its config.json is ours (`model_type` "compiled-numbers"): the sizes of each block, and where each input stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from numbers import Rational, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from compiler.artifact.model import Stack
from compiler.artifact.numbers_config import POSITION, NumberInput, numbers_config
from compiler.artifact.package import bare, needs_residual, packaged_sizes
from compiler.compiled import Compiled
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language.arguments import instance
from compiler.language.operations import Source
from compiler.language.stream import Stream
from compiler.language.types import OPEN, Bool, OneHot
from compiler.layout import Layout
from compiler.runtime.block import Block
from compiler.targets import shipped, target_of
from compiler.targets.sizes import Sizes

if TYPE_CHECKING:
    from compiler.artifact.manifest import Manifest

_MOST_SHOWN = 4  # lanes, in a message
_MOST_BITS = 64  # of the denominator of a fraction, in a message
_AXES = 3  # of the numbers of an input: sequences, positions, lanes
_WHOLE = 2.0**53  # below, float64 holds every integer
Inputs = Mapping[Stream, np.ndarray] | Mapping[str, np.ndarray]  # for each numeric input (batch, time, width)


class NumericStack(nn.Module):
    """Blocks and a linear head over float lanes: h ← [h +] block(h), then head(h).

    inputs: the input streams, in the circuit's order; constant: (d_model,) what every position starts from (`one` = 1);
    length: most positions of the promise. `manifest` and `config` are there where it was loaded.
    """

    manifest: Manifest
    config: dict[str, Any]

    def __init__(self, stack: Stack, inputs: Sequence[NumberInput], length: int, streams: Sequence[Stream] = ()):
        super().__init__()
        self.stack, self.length = stack, length
        self.inputs = tuple(inputs)
        self._streams = tuple(streams) or (None,) * len(self.inputs)

    @property
    def blocks(self) -> Sequence[Block]:
        return self.stack.blocks

    @property
    def residual(self) -> bool:
        return self.stack.residual

    @property
    def constant(self) -> Tensor:
        return self.stack.embedding.weight.detach()[0]

    def pack(self, inputs: Inputs, shape: tuple[int, int] | None = None) -> Tensor:
        """(batch, time, d_model) lanes from the values of the input streams, by stream or by name.

        An input called "position" may be left out: it is then 1, 2, 3, … (or the one-hot of it). shape: (batch, time),
        where nothing else tells it. ValueError where another input is missing or unknown, a value outside its type, or
        a sequence longer than the promise.
        """
        self._check_keys(instance(inputs, Mapping, "inputs", "a dict from numeric input to array"))
        if not inputs and shape is None:
            raise ValueError(f"no numeric input has values; {self._names}.")
        by_key: dict[object, np.ndarray] = {key: _numeric(self._called(key), values) for key, values in inputs.items()}
        shape = next(iter(by_key.values())).shape[:2] if shape is None else _sequences(shape)
        if 0 in shape:
            what = "sequences" if shape[0] == 0 else "positions"
            raise ValueError(f"the inputs have the shape {tuple(shape)}: no {what}, and at least one is needed.")
        if len(shape) > 1 and shape[1] > self.length:
            raise ValueError(f"the inputs have {shape[1]} positions, and the promise is for at most {self.length}.")
        lanes = self.constant.expand(*shape, -1).clone()
        for stream, record in zip(self._streams, self.inputs, strict=True):
            values = by_key.get(stream, by_key.get(record.name))
            if values is None and record.name == POSITION:
                values = positions(record, *shape)
            if values is None:
                raise ValueError(f"numeric input {record.name!r} has no values.")
            values = _checked(record, np.asarray(values), shape)
            seats = np.array(record.lanes)
            lanes[..., seats[seats >= 0]] = torch.from_numpy(values[..., seats >= 0]).to(lanes)
        return lanes

    @property
    def _names(self) -> str:
        return f"the inputs are {', '.join(i.name for i in self.inputs)}" if self.inputs else "the model has no input"

    def _called(self, key: object) -> str:
        """What an input is called here: a stream may have been named anew since."""
        if not isinstance(key, Stream):
            return str(key)
        own = zip(self._streams, self.inputs, strict=True)
        return next((record.name for stream, record in own if stream is key), key.label)

    def _check_keys(self, inputs: Inputs) -> None:
        """ValueError for a key of which it is not sure whose values it has: they would be left out without a word.

        A stream that the circuit does not read may have values, unless it is called as an input is.
        """
        called, own = Counter(i.name for i in self.inputs), set(self._streams)
        for key in inputs:
            if isinstance(key, str) and called[key] > 1:
                raise ValueError(f"{called[key]} numeric inputs are called {key!r}; give each by its stream.")
            if isinstance(key, Stream):
                known = key in own or (None not in own and not called[key.label])
            else:
                known = isinstance(key, str) and called[key] > 0
            if not known:
                another = " of this model, which takes values by name or by its own streams" * isinstance(key, Stream)
                raise ValueError(f"there is no numeric input {self._called(key)!r}{another}; {self._names}.")
            name = self._called(key)
            if isinstance(key, Stream) and name in inputs and called[name] == 1:
                raise ValueError(f"numeric input {name!r} is given twice, by its name and by its stream.")

    def forward(self, lanes: Tensor) -> Tensor:
        """(batch, time, d_model) to (batch, time, outputs)."""
        for stream in self.stack.streams(lanes):
            last = stream
        return self.stack.logits(last)

    def run(self, inputs: Inputs, shape: tuple[int, int] | None = None) -> np.ndarray:
        """The outputs for input values, as float64: (batch, time, outputs)."""
        with torch.no_grad():
            return self(self.pack(inputs, shape)).double().numpy()


@dataclass(frozen=True, eq=False)
class NumericModel:
    """A circuit over numbers as a checkpoint in memory: config.json, tensors by name, and what stands where in them."""

    config: dict
    tensors: dict[str, Tensor]
    layout: Layout
    tokens: tuple[str, ...] = ()  # it has no vocabulary


def numeric_stack(compiled: Compiled) -> NumericStack:
    """The real modules of a circuit over numbers; ValueError for one that reads tokens."""
    if compiled.source.alphabet is not None:
        raise ValueError("the circuit reads tokens; `package.bare` runs it.")
    records = _inputs(compiled)
    return NumericStack(bare(compiled), list(records.values()), compiled.source.max_length, list(records))


def numeric_model(compiled: Compiled, most: int | None = None) -> NumericModel:
    """What is saved of a circuit over numbers; CompileError where it cannot be loaded again as it is.

    most: parameters that it may have; None: as many as it needs.
    """
    records = list(_inputs(compiled).values())
    target = compiled.context.target
    mixer = (target.printed_by or (target.name,))[0]
    twice = [name for name, count in Counter(r.name for r in records).items() if count > 1]
    if twice:
        reason = f"two of its inputs are called {twice[0]!r}, and a saved model is given values by name; rename one"
    elif not records:
        reason = "it reads no input, so that there is nothing to give to a saved model"
    elif mixer not in shipped():
        reason = f"no library ships {target.name}, so there is no saved form of it; compile it for mamba"
    elif most is not None and (least := _least_parameters(modules := packaged_sizes(compiled))) > most:
        reason = (
            f"its model would have {least:,} parameters or more in {len(modules)} blocks, and there may be {most:,}"
        )
    else:
        stack = bare(compiled)
        sizes = [asdict(size) for size in packaged_sizes(compiled)]
        width, outputs = stack.embedding.weight.shape[1], len(stack.head.weight)
        config = numbers_config(mixer, compiled.dtype, width, outputs, needs_residual(compiled), sizes, records)
        return NumericModel(config, {name: p.detach() for name, p in stack.named_parameters()}, stack.layout)
    raise CompileError([(compiled.source.output, reason)])


def _least_parameters(sizes: Sequence[Sizes]) -> int:
    """Fewer than modules of these sizes have: those of the matrices that every mixer has."""
    return sum(2 * s.d_model * s.d_inner + s.d_inner * s.d_state for s in sizes)


def loaded_stack(config: Mapping, tensors: Mapping[str, Tensor], length: int) -> NumericStack:
    """The modules that a checked config.json asks for, with these tensors; length: most positions of the promise."""
    target = target_of(config["mixer"])
    modules = [target.module(target.sizes_of(block), i) for i, block in enumerate(config["blocks"])]
    parts: list[dict[str, Tensor]] = [{} for _ in modules]
    for name, tensor in tensors.items():
        if name.startswith("blocks."):
            _, number, rest = name.split(".", 2)
            parts[int(number)][rest] = tensor
    stack = Stack.without_norms(
        tensors["embedding.weight"], modules, parts, tensors["head.weight"], bool(config["residual"])
    )
    return NumericStack(stack, [NumberInput(**record) for record in config["inputs"]], length)


def reference(compiled: Compiled, inputs: Mapping[Stream, np.ndarray]) -> np.ndarray:
    """What the circuit means, in Python integers and Fractions: (batch, time, outputs) objects."""
    return interpret(compiled.source, inputs=inputs)[compiled.source.output]


def interpret_named(compiled: Compiled, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """The same from values by name; what is left out counts by itself."""
    shape = np.shape(next(iter(inputs.values())))[:2]
    given = {}
    for stream, record in _inputs(compiled).items():
        given[stream] = inputs[record.name] if record.name in inputs else positions(record, *shape).astype(int)
    return reference(compiled, given)


def positions(record: NumberInput, batch: int, length: int) -> np.ndarray:
    """1, 2, 3, … for every sequence, as a number or as its one-hot: (batch, time, width)."""
    if record.width == 1:
        return np.broadcast_to(np.arange(1.0, length + 1)[None, :, None], (batch, length, 1))
    return np.broadcast_to(np.eye(max(length, record.width))[:length, : record.width], (batch, length, record.width))


def _inputs(compiled: Compiled) -> dict[Stream, NumberInput]:
    """Every numeric input that the circuit as written reads, with the lanes of its numbers."""
    seats = {s.operation: at for s, at in compiled.lanes.index.items() if s.operation.source is Source.NUMBERS}
    found = {}
    for stream in compiled.source.streams:
        if stream.operation.source is not Source.NUMBERS:
            continue
        at = seats.get(stream.operation, np.full(stream.width, -1))
        found[stream] = _record(stream, [int(i) for i in at])
    return found


def _record(stream: Stream, lanes: list[int]) -> NumberInput:
    """All that the compiler takes for granted of an input: what `Domains.typed` and `cut_to_type` say of its type."""
    flags = isinstance(type := stream.type, (Bool, OneHot))
    lo, hi = (0, 1) if flags else (getattr(type, "lo", None), getattr(type, "hi", None))
    plain = int if type.integral else float
    low, high = plain(-OPEN if lo is None else lo), plain(OPEN if hi is None else hi)
    record = NumberInput(stream.label, type.integral, low, high, lanes, float(getattr(type, "gap", 0)))
    return replace(record, one_hot=isinstance(type, OneHot)) if record.flags else record


def _sequences(shape: tuple[int, ...]) -> tuple[int, int]:
    """(batch, time); ValueError for what is none."""
    if len(shape) != 2 or not all(isinstance(size, int | np.integer) and size >= 0 for size in shape):
        raise ValueError(f"the shape of a run is {shape}, and (sequences, positions) is needed.")
    return int(shape[0]), int(shape[1])


def _numeric(name: str, values: object) -> np.ndarray:
    """The values as an array of real numbers; ValueError for any other, and where some are left out by a mask."""
    plain = _unwrapped(name, values)
    try:
        array = np.asarray(plain)
    except ValueError as reason:
        raise ValueError(f"numeric input {name!r} has rows of different lengths: {reason}.") from reason
    odd = {type(v).__name__ for v in array.flat if not isinstance(v, Real | np.bool_)} if array.dtype == object else ()
    if odd or array.dtype.kind not in "biufO":
        found = f"{min(odd)} entries" if odd else f"entries of dtype {array.dtype}"
        raise ValueError(f"numeric input {name!r} has {found}, and real numbers are needed.")
    return array


def _unwrapped(name: str, values: object, depth: int = 0) -> object:
    """The values with arrays for tensors, in lists as well; ValueError for tensors and arrays that do not hold all."""
    if isinstance(values, Tensor):
        return _of_tensor(name, values)
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"numeric input {name!r} is a masked array, and every number is needed; fill it first.")
    if isinstance(values, Sequence) and not isinstance(values, str | bytes) and depth <= _AXES:
        return [_unwrapped(name, entry, depth + 1) for entry in values]
    return values


def _of_tensor(name: str, tensor: Tensor) -> np.ndarray:
    """The numbers of a tensor, of float formats as float64; ValueError where it holds none, or not one after another.

    What NumPy has no word for is told here: torch names functions of its own.
    """
    quantized, kind = tensor.is_quantized, str(tensor.layout).removeprefix("torch.")
    if tensor.is_meta or quantized or tensor.is_nested or tensor.layout is not torch.strided:
        kind = "meta" if tensor.is_meta else "quantized" if quantized else "nested" if tensor.is_nested else kind
        raise ValueError(f"numeric input {name!r} is a {kind} tensor, and one that holds every number is needed.")
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    return (plain.double() if plain.is_floating_point() else plain).numpy()


def _rounded(record: NumberInput, given: np.ndarray) -> np.ndarray:
    """The values in float64; ValueError where that changes an integer, or makes one."""
    with np.errstate(over="ignore"):
        try:
            values = given.astype(np.float64)
        except OverflowError:
            raise ValueError(
                f"numeric input {record.name!r} holds a number beyond float64, and it must be {record.kind}."
            ) from None
    if not record.integral or given.dtype.kind in "bf" and given.dtype.itemsize <= values.itemsize:
        return values
    near = np.isfinite(values) & (np.abs(values) <= max(-record.least, record.most))
    if given.dtype.kind in "iu":
        near &= np.abs(values) >= _WHOLE
    for value, held in zip(given[near].tolist(), values[near].tolist(), strict=True):
        if value != held:
            whole = not isinstance(value, Fraction) or value.denominator == 1
            unheld = ", which float64 does not" * whole
            raise ValueError(
                f"numeric input {record.name!r} holds {_exactly(value)}{unheld}, and it must be {record.kind}."
            )
    return values


def _exactly(value: Any) -> str:
    """All digits: in those of a float64 it would be written as the number that float64 does hold."""
    if not isinstance(value, Rational):
        return np.format_float_positional(value, unique=True, trim="0")
    exact = Fraction(value)
    few = exact.denominator.bit_length() <= _MOST_BITS
    return str(exact) if few else f"a fraction near {float(exact):g}"


def _checked(record: NumberInput, given: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The promises of a circuit hold on the declared types only."""
    values = _rounded(record, given)
    if values.shape != (*shape, record.width):
        known = values.ndim == 3 and len(shape) == 2  # of one axis too few nobody can say which sequence it is of
        wanted = (*shape, record.width) if known else f"(sequences, positions, {record.width})"
        raise ValueError(f"numeric input {record.name!r} has the shape {values.shape}, and {wanted} is needed.")
    wrong = ~np.isfinite(values)
    wrong |= (values < record.least) | (values > record.most)
    wrong |= (values != 0) & (np.abs(values) < record.gap)
    if record.integral:
        wrong |= values != np.round(values)
    if wrong.any():
        raise ValueError(
            f"numeric input {record.name!r} holds {_written(given[wrong][0])}, and it must be {record.kind}."
        )
    if record.one_hot and (several := values.sum(axis=-1) > 1).any():
        lanes = np.flatnonzero(values[several][0])[:_MOST_SHOWN].tolist()
        raise ValueError(
            f"numeric input {record.name!r} has a 1 in lanes {', '.join(map(str, lanes))} of one position, and it must "
            f"be {record.kind}."
        )
    return values


def _written(value: Any) -> str:
    """In six digits where they are all; a number just outside of a bound would else be written as the bound."""
    if isinstance(value, Rational):
        return _exactly(value)
    exact = float(value)
    short = f"{exact:g}"
    return short if float(short) == exact else str(int(exact)) if exact.is_integer() else repr(exact)
