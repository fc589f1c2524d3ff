"""config.json of a model over numbers: our own, for no library has a class for it. Needs no torch to be read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compiler.artifact.errors import CheckpointError
from compiler.artifact.json_files import shown
from compiler.artifact.schema import parse
from compiler.language.types import OPEN

MODEL_TYPE = "compiled-numbers"
ONE_HOT = "one-hot or all 0"  # what a OneHot may be, in words
POSITION = "position"  # an input of this name counts by itself where it is not given
LARGEST_SIZE = 1 << 20


@dataclass(frozen=True)
class NumberInput:
    """An input stream: its name, the bounds of its numbers, the lane of each (−1: nobody reads it).

    lo, hi: None, of earlier versions, stands for 2^62 in size: what the compiler took for an open bound.
    gap: how near to 0 a number may be that is not 0.
    one_hot: of several numbers that are each 0 or 1, whether at most one of them may be 1 at a position (one-hot or all
        0), which a compiled circuit relies on; None where it is not asked, and in files of earlier versions.
    """

    name: str
    integral: bool
    lo: float | None
    hi: float | None
    lanes: list[int]
    gap: float = 0.0
    one_hot: bool | None = None

    @property
    def width(self) -> int:
        return len(self.lanes)

    @property
    def flags(self) -> bool:
        """Whether it is several numbers that are each 0 or 1: then it must say whether it is one-hot."""
        return self.width > 1 and self.integral and (self.lo, self.hi) == (0, 1)

    @property
    def least(self) -> float:
        return -OPEN if self.lo is None else self.lo

    @property
    def most(self) -> float:
        return OPEN if self.hi is None else self.hi

    @property
    def kind(self) -> str:
        """Such as "a real number from -8 to 8", or "one-hot or all 0"."""
        if self.one_hot:
            return ONE_HOT
        what = "an integer" if self.integral else "a real number"
        apart = f", 0 or at least {self.gap:g} in size" if self.gap else ""
        return f"{what} from {_bound(self.least)} to {_bound(self.most)}{apart}"

    def __str__(self) -> str:
        each = "" if self.one_hot else "each "
        return f"{self.name}: " + (f"{self.width} numbers, {each}{self.kind}" if self.width > 1 else self.kind)


def _bound(number: float) -> str:
    """A whole number with all its digits up to 2^53, of which float64 holds every one; others as six digits, or as the
    power of two that they are.
    """
    if number != int(number):
        return f"{number:g}"
    size = abs(int(number))
    if size <= 2**53:
        return str(int(number))
    return f"{number:g}" if size & (size - 1) else f"{'-' * (number < 0)}2^{size.bit_length() - 1}"


@dataclass(frozen=True)
class NumbersConfig:
    """blocks: the sizes of each, as the mixer's class takes them; outputs: how many numbers the head gives."""

    model_type: str
    mixer: str
    dtype: str
    d_model: int
    outputs: int
    residual: bool
    blocks: list[dict[str, int]]
    inputs: list[NumberInput]


def numbers_config(
    mixer: str,
    dtype: str,
    d_model: int,
    outputs: int,
    residual: bool,
    blocks: Sequence[Mapping[str, int]],
    inputs: Sequence[NumberInput],
) -> dict[str, Any]:
    """The content of config.json."""
    given = (MODEL_TYPE, mixer, dtype, d_model, outputs, residual, [dict(b) for b in blocks], list(inputs))
    config = asdict(NumbersConfig(*given))
    unsaid = (("gap", 0.0), ("one_hot", None))
    config["inputs"] = [{k: v for k, v in r.items() if (k, v) not in unsaid} for r in config["inputs"]]
    return config


def numbers_example(inputs: Sequence[Mapping[str, Any]], length: int) -> str:
    """Values for an example, as Python text: {"x": an array of the right shape, of zeros where they are allowed}; what
    counts by itself is left out, unless it is all there is. length: most positions.
    """
    named, count = [NumberInput(**record) for record in inputs if record["name"] != POSITION], min(3, length)
    if not named:
        return f'{{"{POSITION}": np.arange(1, {count + 1}).reshape(1, {count}, 1)}}'
    return "{" + ", ".join(f"{json.dumps(record.name)}: {_example(record, count)}" for record in named) + "}"


def _example(record: NumberInput, count: int) -> str:
    """The number of its range that is nearest to 0, and not within its gap: of integers without a digit behind the
    point.
    """
    shape, near = f"(1, {count}, {record.width})", min(max(record.least, 0), record.most)
    near = max(near, record.gap) if near > 0 else min(near, -record.gap) if near < 0 else near
    return f"np.full({shape}, {int(near) if record.integral else float(near)!r})" if near else f"np.zeros({shape})"


def is_numbers(config: Any) -> bool:
    """Whether a config.json is one of these."""
    return isinstance(config, Mapping) and config.get("model_type") == MODEL_TYPE


def check_numbers_config(config: Mapping) -> None:
    """CheckpointError, in one sentence, unless `numbers_config` could have given it."""
    from compiler.formats import FORMATS
    from compiler.targets import shipped

    read = parse(NumbersConfig, dict(config), "config.json")
    if read.mixer not in shipped():
        raise CheckpointError(f"config.json: mixer is {shown(read.mixer)}, expected one of {', '.join(shipped())}.")
    if read.dtype not in FORMATS:
        raise CheckpointError(f"config.json: dtype is {shown(read.dtype)}, expected one of {', '.join(FORMATS)}.")
    sizes = [("d_model", read.d_model), ("outputs", read.outputs)]
    for number, block in enumerate(read.blocks):
        if block.get("d_model") != read.d_model:
            raise CheckpointError(f"config.json: block {number + 1} has another d_model than the model.")
        sizes += [(f"{name} of block {number + 1}", size) for name, size in block.items()]
    for name, size in sizes:
        if not 1 <= size <= LARGEST_SIZE:
            raise CheckpointError(f"config.json: {name} is {shown(size)}, and 1 to {LARGEST_SIZE} is possible.")
    for record in read.inputs:
        _check_one_hot(record)
    seats = [lane for record in read.inputs for lane in record.lanes]
    if not seats or any(not -1 <= lane < read.d_model for lane in seats):
        raise CheckpointError(f"config.json: inputs stand in lanes outside 0 to {read.d_model - 1}.")


def _check_one_hot(record: NumberInput) -> None:
    """CheckpointError for flags that do not say whether they are one-hot: of an earlier version, which took whatever is
    0 or 1, and computed something else than the circuit where several of a one-hot were 1.
    """
    name = shown(record.name)
    if record.flags and record.one_hot is None:
        raise CheckpointError(
            f"config.json: input {name} does not say whether it is one-hot, so it is of an earlier version, whose "
            "promise was too wide; build it again."
        )
    if record.one_hot is not None and not record.flags:
        raise CheckpointError(f"config.json: input {name} has an entry one_hot, and its numbers are no flags.")


def numbers_shapes(config: Mapping) -> dict[str, tuple[int, ...]]:
    """Shape of every tensor of the model, from the mixer's own class (on the meta device: no memory is used)."""
    from compiler.targets import target_of

    target, width = target_of(config["mixer"]), config["d_model"]
    shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (1, width), "head.weight": (config["outputs"], width)}
    for number, block in enumerate(config["blocks"]):
        try:
            module = target.module(target.sizes_of(block), number)
        except (TypeError, ValueError, RuntimeError, AssertionError) as reason:
            raise CheckpointError(f"config.json: block {number + 1} has sizes that no {target.name} has.") from reason
        shapes |= {f"blocks.{number}.{name}": tuple(t.shape) for name, t in module.named_parameters()}
    return shapes
