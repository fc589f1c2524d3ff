"""What operations share: the class they derive from, with their traits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy import sparse

from compiler.language.alphabet import Alphabet
from compiler.language.operations.exact import Array
from compiler.language.operations.known import Known, Operand
from compiler.language.operations.traits import LaneWise, Sees, Source
from compiler.language.types import Type
from compiler.lattice.domain import Domain
from compiler.lattice.intervals import Value

_Result = TypeVar("_Result")


def _of_its_inputs(method: Callable[..., _Result]) -> Callable[..., _Result]:
    """The method, typed so that each operation may name the inputs that it has, as many as there are."""
    return method


@dataclass(frozen=True, eq=False)
class Operation:
    """One node of a circuit; subclasses are the words of the language.

    Passes ask for these traits and list no operations; what a subclass does not declare is what
    holds of every operation, so that forgetting costs blocks and never an answer. Traits are true of a meaning:
    a subclass with an `evaluate` of its own inherits none.

    sees:            what its value depends on.
    source:          where the values of a source come from; None for what has operands.
    lane_wise:       which lanes of its operands a lane of the result is made of.
    zero_preserving: whether inputs of zeros give zeros, so that it commutes with shifts, before the start too.
    followed:        whether paths through the input language follow it, step by step (`step`).
    core:            whether a block computes it, by a gadget; other operations are rewritten in these.
    foldable:        whether, as a function of one token, it becomes a table of the embedding.
    free:            whether it costs no block: sources stand on lanes before the first one, linear maps and delays fold
        into their readers.
    rectifies:       whether it is max(x, 0), or stands for it.
    conjunction:     whether it is the product of two flags.
    multiplies:      whether it is the product of its two operands, lane by lane.
    vanishes:        whether the result is 0 wherever one operand is.
    keeps_sizes:     whether each number is one of the first operand, or 0.
    ranks:           whether only the order of its numbers means anything, as of scores.
    accumulates:     whether it is the sum of its operand so far.
    counts:          whether it is how often its first operand held since the second last did.
    latches:         whether it keeps, under each flag of its second operand, values of its first.
    opens_bank:      whether its second operand opens an entry of its first, a bank that has no lanes of its own.
    keyed:           whether its state holds values (first operand) under keys (second).
    whole_state:     whether its state only ever holds its first operand's numbers, or sums of them.
    approximate:     whether blocks compute it within an error, even if its operands are integers.
    halved:          whether it is computed of pairs of halves, even if its operands are integers.
    known:           every operation by its class name, which is its name where a circuit is written as data.
    """

    sees: ClassVar[Sees] = Sees.PAST
    source: ClassVar[Source | None] = None
    lane_wise: ClassVar[LaneWise] = LaneWise.TOGETHER
    zero_preserving: ClassVar[bool] = False
    foldable: ClassVar[bool] = True
    core: ClassVar[bool] = False
    followed: ClassVar[bool] = False
    free: ClassVar[bool] = False
    rectifies: ClassVar[bool] = False
    conjunction: ClassVar[bool] = False
    multiplies: ClassVar[bool] = False
    vanishes: ClassVar[bool] = False
    keeps_sizes: ClassVar[bool] = False
    ranks: ClassVar[bool] = False
    accumulates: ClassVar[bool] = False
    counts: ClassVar[bool] = False
    latches: ClassVar[bool] = False
    opens_bank: ClassVar[bool] = False
    keyed: ClassVar[bool] = False
    whole_state: ClassVar[bool] = False
    approximate: ClassVar[bool] = False
    halved: ClassVar[bool] = False
    known: ClassVar[dict[str, type[Operation]]] = {}

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        other = Operation.known.get(cls.__name__, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"{other.__module__} has an operation {cls.__name__} already; give this one another name")
        Operation.known[cls.__name__] = cls
        if "evaluate" in vars(cls):
            for name in _OF_A_MEANING - vars(cls).keys():
                setattr(cls, name, vars(Operation)[name])

    @property
    def symbol(self) -> str:
        return type(self).__name__.lower()

    @property
    def maps(self) -> tuple[sparse.csr_array, ...] | None:
        """The matrices of a sum of linear maps, one for each operand; None for any other operation."""
        return None

    @property
    def declared(self) -> Type | None:
        """The type that its author, or a pass, declared of it; None where its type follows from its operands."""
        return None

    @property
    def delay(self) -> int | None:
        """How many positions back it passes its operand on as it is; None where it does not."""
        return None

    @property
    def constants(self) -> tuple[Fraction, ...] | None:
        """The numbers that it holds at every position; None where they are not always the same."""
        return None

    @property
    def token_table(self) -> sparse.csr_array | None:
        """(vocabulary × width), what it holds for each token; None where it does not read the token."""
        return None

    @property
    def token_alphabet(self) -> Alphabet | None:
        """The alphabet of the token that it reads; None where it reads none."""
        return None

    @property
    def write_policy(self) -> str | None:
        """Which write a read of a keyed memory answers with; None for what is none."""
        return None

    @property
    def alternatives(self) -> int | None:
        """n where it is the one-hot of an integer among 0 … n − 1; None where it is not."""
        return None

    @property
    def silu_scale(self) -> float | None:
        """S where it stands for silu(Sx)/S; None for what is exact."""
        return None

    @property
    def silenced_by(self) -> int | None:
        """The operand whose zeros at a position give zeros there, of operations over the past; None for no such one."""
        return None

    @property
    def arity(self) -> int | None:
        """How many operands it needs, where that is not told by `result_type`."""
        return None

    def over(self, alphabet: Alphabet, place: sparse.csr_array) -> Operation:
        """The same over a larger alphabet, in which its tokens stand at these places (a 0/1 matrix)."""
        return self

    def gap(self) -> Fraction:
        """The least size of its numbers but 0, where its author declares one; 0 where none is known."""
        return Fraction(0)

    def written_once(self) -> Operation | None:
        """The same where no slot of a memory is written twice; None where that changes nothing."""
        return None

    def says(self, number: int) -> str | None:
        """What a number of a source says, in words; None where its type and name do."""
        return None

    def lanes_read(self, read: Array, *widths: int) -> list[Array]:
        """Of each operand, of these widths, the lanes that these lanes of the result are made of (masks)."""
        whole = [np.ones(width, dtype=bool) for width in widths]
        if self.lane_wise is LaneWise.VALUE:
            return [np.logical_or.reduce(read.reshape(-1, widths[0])), *whole[1:]]
        if self.lane_wise is LaneWise.EACH:
            return [read if width == len(read) else all_ for width, all_ in zip(widths, whole, strict=True)]
        return whole

    @_of_its_inputs
    def written(self, *inputs: str) -> str:
        """The expression as its author would write it, from those of the inputs: the name of a stream without one."""
        return f"{self.symbol}({', '.join(inputs)})"

    @_of_its_inputs
    def bounds(self, *inputs: Domain, length: int) -> tuple[Fraction, Fraction, Fraction] | None:
        """(quantum, least, greatest) of every lane over so many positions, from the domains of the inputs.

        Only for operations without a sharper `domain`; where this is None nothing can be promised.
        """
        return None

    def domain(self, stream: Operand, known: Known) -> Domain | None:
        """What a stream of this operation can hold, from the domains of its inputs; None where no bounds are known."""
        bounds = self.bounds(*(known.of(s) for s in stream.inputs), length=known.max_length)
        return None if bounds is None else known.interval(*bounds, stream.width)

    @_of_its_inputs
    def unmet(self, *inputs: Domain) -> str | None:
        """What it needs of its operands beyond their types, and they are not shown to hold; None where all is well."""
        return None

    @_of_its_inputs
    def step(self, memory: Any, counted: int, *operands: Value) -> tuple[Value | None, Any]:
        """At a step of a path (what it can hold, None where nothing is known; what is remembered behind the step).

        memory: what was remembered of the steps before, None at the start; counted: how far counts are kept apart;
        operands: what its operands can hold. Of a function of one position it is the value, where each operand is one
        number.
        """
        if self.sees is Sees.PAST or any(lo != hi for v in operands for lo, hi in v):
            return None, None
        arrays = [np.array([lo for lo, _ in v], dtype=object).reshape(1, 1, -1) for v in operands]
        return tuple((v, v) for v in self.evaluate(*arrays)[0, 0]), None

    def formed(self, stream: Operand, known: Known) -> Fraction:
        """The largest sum, in quanta, that `evaluate` forms beside its operands and its value."""
        return Fraction(0)

    def held(self, known: Known) -> Domain:
        """What a constant holds at the positions of a sequence; before its start it is 0."""
        raise TypeError(f"{self.symbol} is no constant")

    def cell(self, value: Domain, key: Domain) -> Fraction:
        """A bound on every entry of a state that keeps values under keys."""
        raise TypeError(f"{self.symbol} keeps no values under keys")

    @_of_its_inputs
    def result_type(self, *inputs: Type) -> Type:
        raise NotImplementedError

    @_of_its_inputs
    def problems(self, *inputs: Type) -> list[str]:
        return []

    def carries(self, number: int, *widths: int) -> tuple[int, int] | None:
        """(input, which of its numbers) that this number of the result keeps or passes on, for inputs of these widths.

        None where it means something new.
        """
        return None

    def multiple(self, number: int) -> tuple[int, int, float] | None:
        """(input, which of its numbers, factor) where this number of the result is a multiple of that one alone."""
        return None

    @_of_its_inputs
    def evaluate(self, *inputs: Array) -> Array:
        raise NotImplementedError


_OF_ITS_FORM = {
    "known",
    "symbol",
    "written",
    "result_type",
    "problems",
    "evaluate",
    "declared",
    "arity",
    "over",
    "says",
}
_OF_A_MEANING = {name for name in vars(Operation) if not name.startswith("_")} - _OF_ITS_FORM
"""What is inherited only together with the meaning that it is true of."""
