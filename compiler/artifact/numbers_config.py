"""config.json of a model over numbers: our own, for no library has a class for it. Needs no torch to be read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compiler.artifact.errors import CheckpointError
from compiler.artifact.json_files import shown
from compiler.artifact.schema import parse

MODEL_TYPE = "compiled-numbers"
POSITION = "position"  # an input of this name counts by itself where it is not given
LARGEST_SIZE = 1 << 20


@dataclass(frozen=True)
class NumberInput:
    """An input stream: its name, the bounds of its numbers (None: no bound), the lane of each (−1: nobody reads it).

    gap: how near to 0 a number may be that is not 0.
    """

    name: str
    integral: bool
    lo: float | None
    hi: float | None
    lanes: list[int]
    gap: float = 0.0

    @property
    def width(self) -> int:
        return len(self.lanes)

    @property
    def kind(self) -> str:
        """Such as "a real number from -8 to 8"."""
        what = "an integer" if self.integral else "a real number"
        low = "" if self.lo is None else f" from {_bound(self.lo)}"
        apart = f", 0 or at least {self.gap:g} in size" if self.gap else ""
        return f"{what}{low}" + ("" if self.hi is None else f" to {_bound(self.hi)}") + apart

    def __str__(self) -> str:
        return f"{self.name}: " + (f"{self.width} numbers, each {self.kind}" if self.width > 1 else self.kind)


def _bound(number: float) -> str:
    """A whole number with all its digits up to 2^53, of which float64 holds every one; others as six digits."""
    return str(int(number)) if abs(number) <= 2**53 and number == int(number) else f"{number:g}"


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
    config["inputs"] = [{k: v for k, v in record.items() if k != "gap" or v} for record in config["inputs"]]
    return config


def numbers_example(inputs: Sequence[Mapping[str, Any]]) -> str:
    """Values for an example, as Python text: {"x": zeros of the right shape}; what counts by itself is left out, unless
    it is all there is.
    """
    named = [NumberInput(**record) for record in inputs if record["name"] != POSITION]
    if not named:
        return f'{{"{POSITION}": np.arange(1, 4).reshape(1, 3, 1)}}'
    return "{" + ", ".join(f"{json.dumps(record.name)}: np.zeros((1, 3, {record.width}))" for record in named) + "}"


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
    seats = [lane for record in read.inputs for lane in record.lanes]
    if not seats or any(not -1 <= lane < read.d_model for lane in seats):
        raise CheckpointError(f"config.json: inputs stand in lanes outside 0 to {read.d_model - 1}.")


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
