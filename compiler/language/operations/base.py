"""What operations share: the class they derive from, exact weights, and how a matrix acts on arrays."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy import sparse

from compiler.language.alphabet import Alphabet
from compiler.language.arguments import Exact
from compiler.language.kinds import is_flags
from compiler.language.operations.known import Known, Operand
from compiler.language.types import Bool, Int, OneHot, Real, Type
from compiler.lattice.domain import Domain
from compiler.lattice.intervals import Value

Array = np.ndarray
_Result = TypeVar("_Result")
RANGE = Fraction(2) ** 256  # beyond, and below its inverse, products of bounds could leave the range of float64
_LONGEST_NUMBER = 24  # characters
_BRACKETS = r"\([^()]*\)|\[[^\[\]]*\]"
_IN_CACHE = 1 << 16  # float64 numbers


def exact_number(value: Exact) -> float:
    """The float64 equal to a rational; ValueError when there is none (exact-arithmetic E12)."""
    if not is_dyadic(value):
        raise ValueError(no_weight(value))
    return float(value)


def no_weight(value: Exact) -> str:
    """Why a number that no float64 holds is no weight."""
    return f"weight {number_text(Fraction(value))} {_unheld(Fraction(value))}"


def is_dyadic(value: Exact) -> bool:
    """Whether a float64 holds the number exactly."""
    try:
        return Fraction(float(value)) == Fraction(value)
    except OverflowError:
        return False


def is_summable(value: Exact) -> bool:
    """Whether a float64 holds the number exactly, and products of its bounds keep within the range of float64."""
    return is_dyadic(value) and (not value or 1 / RANGE <= abs(Fraction(value)) <= RANGE)


def not_summable(what: str, values: tuple[Fraction, ...]) -> list[str]:
    """The complaint about the first of the numbers that no float holds or sums; [] where there is none."""
    bad = next((v for v in values if not is_summable(v)), None)
    if bad is None or not is_dyadic(bad):
        return not_dyadic(what, values)
    beyond = "exceeds 2^256" if abs(bad) > 1 else "is finer than 2^−256"
    return [f"{what} {number_text(bad)} {beyond}, and no float sums such numbers exactly"]


def not_dyadic(what: str, values: tuple[Fraction, ...]) -> list[str]:
    """The complaint about the first of the numbers that no float holds; [] where there is none."""
    bad = next((v for v in values if not is_dyadic(v)), None)
    return [] if bad is None else [f"{what} {number_text(bad)} {_unheld(bad)}"]


def _unheld(value: Fraction) -> str:
    if value.denominator & (value.denominator - 1):
        return "is no dyadic rational, so no float holds it exactly; use k/2^n"
    return "has more than 53 bits, so no float64 holds it exactly; use k/2^n with k of at most 53 bits"


def number_text(value: Fraction) -> str:
    """The number as it is, or about that where this would be a line of digits."""
    text = str(value)
    if len(text) <= _LONGEST_NUMBER:
        return text
    return f"{float(value):g}" if abs(value) < Fraction(2) ** 1023 else "beyond ±2^1023"


def exact_matrix(matrix: Array | sparse.sparray) -> sparse.csr_array:
    """A matrix of dyadic rationals as sparse float64, every entry exact."""
    if not sparse.issparse(matrix) and np.asarray(matrix).dtype == object:
        matrix = np.vectorize(exact_number, otypes=[float])(matrix)
    result = sparse.csr_array(matrix, dtype=np.float64)
    _check_unrounded(np.asarray(matrix.data if sparse.issparse(matrix) else matrix))
    result.sum_duplicates()
    result.eliminate_zeros()
    if not np.isfinite(result.data).all():
        raise ValueError("a matrix holds an infinity or a NaN, and weights must be numbers")
    return result


def _check_unrounded(given: Array) -> None:
    """ValueError where the numbers given may be wider than float64, so that they were rounded on their way."""
    if given.dtype == np.float64 or given.dtype.itemsize < 8 or not given.size:
        return
    largest = max(abs(int(given.max())), abs(int(given.min()))) if given.dtype.kind in "iu" else np.inf
    if largest > 2**53:
        raise ValueError(
            f"a matrix of {given.dtype} holds numbers up to {largest}, and weights are exact up to 2^53; give Fractions"
        )


@lru_cache(maxsize=1 << 16)
def scaled_identity(width: int, factor: float = 1.0) -> sparse.csr_array:
    """factor · 1 (width × width), one shared matrix for each; not to be changed in place."""
    places = np.arange(width + 1)
    return exact_matrix(sparse.csr_array((np.full(width, factor), places[:-1], places), shape=(width, width)))


@lru_cache(maxsize=1 << 12)
def copies(width: int, factor: float = 1.0) -> sparse.csr_array:
    """The (width × 1) matrix that copies factor · a single lane to every lane, shared as well."""
    return exact_matrix(np.full((width, 1), factor))


def with_width(type: Type, width: int) -> Type | None:
    """The type of so many of the lanes of a stream of this type; None where that depends on which."""
    if isinstance(type, (Bool, OneHot)):
        return Bool(width)
    if isinstance(type, (Int, Real)) and type.kinds:
        return None
    return Int(width=width) if type.integral else Real(width=width)


def apply(matrix: sparse.csr_array, x: Array) -> Array:
    """matrix · x over the last axis: (batch, time, w_in) to (batch, time, w_out), exactly."""
    if x.dtype != object:
        return _multiplied(matrix, x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], matrix.shape[0])
    weights, below = _exact_weights(matrix.data), 1
    whole, whole_weights = _numerators(x), _numerators(weights)
    if whole and whole_weights:  # sums of integers take a fraction of the time of sums of Fractions
        (x, denominator), (weights, scale) = whole, whole_weights
        below = denominator * scale
    out = np.zeros((*x.shape[:-1], matrix.shape[0]), dtype=object)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)).tolist()
    for i, j, weight in zip(rows, matrix.indices.tolist(), weights.tolist(), strict=True):
        out[..., i] += x[..., j] if weight == 1 else weight * x[..., j]
    return out if below == 1 else _divided(out, below)


def _exact_weights(data: Array) -> Array:
    return np.array([int(w) if w.is_integer() else Fraction(w) for w in data.tolist()], dtype=object)


def _numerators(numbers: Array) -> tuple[Array, int] | None:
    """Integers and the power of two below all of them; None where there is none, or for what only acts as numbers."""
    flat = numbers.ravel().tolist()
    kinds = set(map(type, flat))
    if not kinds <= {int, Fraction}:
        return None
    if Fraction not in kinds:
        return numbers, 1
    below = lcm(*{v.denominator for v in flat})
    if below & (below - 1):
        return None
    whole = np.empty(len(flat), dtype=object)
    whole[:] = [v.numerator * (below // v.denominator) for v in flat]
    return whole.reshape(numbers.shape), below


def _divided(numbers: Array, below: int) -> Array:
    """numbers / below: integers where it divides them, else Fractions."""
    return np.frompyfunc(lambda v: Fraction(v, below) if v % below else v // below, 1, 1)(numbers)


def _multiplied(matrix: sparse.csr_array, rows: np.ndarray) -> np.ndarray:
    """matrix · row for every row, in blocks: SciPy's result is transposed, which is turned while it is in the cache."""
    out = np.empty((len(rows), matrix.shape[0]), np.result_type(matrix.dtype, rows.dtype))
    block = max(1, _IN_CACHE // max(1, *matrix.shape))
    for start in range(0, len(rows), block):
        out[start : start + block] = (matrix @ rows[start : start + block].T).T
    return out


def shifted(x: Array, k: int) -> Array:
    out = np.zeros_like(x)
    if k < x.shape[1]:
        out[:, k:] = x[:, : x.shape[1] - k]
    return out


class Sees(Enum):
    """What the value at a position is a function of."""

    POINTWISE = "the inputs at this position"
    LINEAR = "the inputs at this position, linearly"
    PAST = "the inputs at this position and before"


class Source(Enum):
    """Where a source takes its values from."""

    TOKEN = "the present token"
    NUMBERS = "numbers that are given at each position"
    RUN = "nothing but the position"


class LaneWise(Enum):
    """Which lanes of the operands a lane of the result is made of; lane by lane, some may be left out."""

    TOGETHER = "any lanes"
    EACH = "the same lane of each operand, or the only lane of one"
    VALUE = "the same lane of the first operand, under each flag of a latch"


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
    followed:        whether walks through the input language follow it, step by step (`step`).
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
        """(lattice step, least, greatest) of every lane over so many positions, from the domains of the inputs.

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
        """At a step of a walk (what it can hold, None where nothing is known; what is remembered behind the step).

        memory: what was remembered of the steps before, None at the start; counted: how far counts are kept apart;
        operands: what its operands can hold. Of a function of one position it is the value, where each operand is one
        number.
        """
        if self.sees is Sees.PAST or any(lo != hi for v in operands for lo, hi in v):
            return None, None
        arrays = [np.array([lo for lo, _ in v], dtype=object).reshape(1, 1, -1) for v in operands]
        return tuple((v, v) for v in self.evaluate(*arrays)[0, 0]), None

    def formed(self, stream: Operand, known: Known) -> Fraction:
        """The largest sum, in lattice steps, that `evaluate` forms beside its operands and its value."""
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


def grouped(expression: str, looser: str = " ") -> str:
    """An expression as an operand: in parentheses where it is more than one word or call.

    looser: what stands outside of brackets in an expression that needs parentheses (a pattern).
    """
    outside, shorter = expression, re.sub(_BRACKETS, "", expression)
    while shorter != outside:
        outside, shorter = shorter, re.sub(_BRACKETS, "", shorter)
    return f"({expression})" if re.search(looser, outside) or expression[:1] in ("-", "~") else expression


def called(expression: str) -> str:
    """An expression of which a word is called, or lanes are picked: no product of numbers, either."""
    return grouped(expression, "[ */]")


def term(expression: str) -> str:
    """An expression as a term of a sum, within which products and sums need no parentheses."""
    return expression if expression[:1] in ("-", "~") else grouped(expression, " ([<>=!]=?|[&|]) ")


def picked(expression: str, lanes: Array) -> str:
    """These lanes of an expression, as their author would pick them."""
    return f"{called(expression)}[{', '.join(map(str, lanes[:4]))}{', …' if len(lanes) > 4 else ''}]"


def needs(kind: type | tuple[type, ...], what: str, *operands: Type, **named: Type) -> list[str]:
    """The complaints about operands of another kind: the one or the two by their order, others by name."""
    order = ("first operand", "second operand") if len(operands) == 2 else ("operand",)
    called = {f"its {name}": t for name, t in (*zip(order, operands, strict=False), *named.items())}
    flags = Bool in (kind if isinstance(kind, tuple) else (kind,))
    fits = lambda t: isinstance(t, kind) or flags and is_flags(t)
    return [f"{name} is {t}, and {what} is needed" for name, t in called.items() if not fits(t)]


def same_width(*inputs: Type) -> list[str]:
    widths = [t.width for t in inputs]
    return [] if len(set(widths)) == 1 else [f"its inputs have {' and '.join(map(str, widths))} lanes; they must agree"]
