"""Streams: the nodes of a circuit graph, and the operators that build them.

A stream is one value (a vector of `width` numbers) per position. It is an operation
applied to earlier streams, so a circuit is a directed acyclic graph by construction.
Building never raises for ill-typed operands: the check pass reports all of them at once.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from inspect import Signature, signature

import numpy as np
from scipy import sparse

from compiler.language import operations as ops
from compiler.language.arguments import MOST_LANES, Exact, Number, instance, integer, number, shown
from compiler.language.declared import declared
from compiler.language.expression import expression
from compiler.language.given_matrix import given_matrix
from compiler.language.origin import source_line
from compiler.language.types import OneHot, Real, Type

_OPERAND = "a stream or a number"
_DEEPEST = 3  # operations in the expression that names a stream, one inside the other
_standing_for: ContextVar[Stream | None] = ContextVar("standing for", default=None)


class Stream:
    """One value per position: an operation and the streams it reads.

    Operators: `+ - *` (numbers, other streams), `matrix @ s`, `s ** n`, `s // n` and `s % n`
    (n a positive integer, rounded down as in Python), comparisons
    (giving Bool), `& | ~` on Bool, `s[i]` / `s[ids]` to pick lanes. A stream of a single lane, or a
    number, meets every lane of the other operand.

    Comparisons are lane by lane, but `==` and `!=` of two OneHots give one flag: whether both are
    present and name the same alternative. So an absent one does not equal itself.

    variable: what it was called in the function that made a circuit of it; None where nothing was.
    """

    __array_ufunc__ = None  # so that `array @ stream` comes to __rmatmul__
    __hash__ = object.__hash__

    def __init__(self, operation: ops.Operation, inputs: Sequence[Stream] = (), name: str | None = None):
        self.operation = instance(operation, ops.Operation, "the operation of a stream", "an operation such as Relu()")
        self.inputs = _checked(operation, inputs)
        author = _standing_for.get()
        if author is not None and author.operation is operation and _of_one_type(author.inputs, self.inputs):
            self.type: Type = author.type
        else:
            self.type = _result_type(operation, self.inputs)
        self.name = None if name is None else _one_line(name)
        self.origin: str = source_line() if author is None else author.origin
        self._as_written = None if author is None else author.as_written
        self._expression: str | None = None
        self.variable: str | None = None

    def named(self, name: str) -> Stream:
        """Give the stream the name that its lanes and channels carry in the weights: a text of one line."""
        self.name = _one_line(name)
        return self

    @property
    def as_written(self) -> Stream:
        """The stream of the author's that messages tell instead of one that a pass has made."""
        return self if self._as_written is None else self._as_written

    @property
    def label(self) -> str:
        """The name, or the expression that the stream was written as, cut short."""
        if self.name:
            return self.name
        if self._expression is None:
            self._expression = expression(self, _DEEPEST)
        return self._expression

    @property
    def width(self) -> int:
        """Its lanes: how many numbers it holds at each position."""
        return self.type.width

    def __repr__(self) -> str:
        return f"<{self.label}: {self.type} at {self.origin}>"

    def __bool__(self) -> bool:
        raise TypeError(f"stream {self.label!r} has no truth value while the circuit is built; use & | ~ and select()")

    def retyped(self, type: Type) -> Stream:
        """The same numbers under a sharper type; a circuit is refused where the type cannot be shown.

        A gap cannot be, nor can a Code, but of a stream with the same codebook. Bounds of a Real are only shown: what
        is computed rests on what can be shown.
        """
        declared(type, "retyped")
        if type.width != self.width:
            raise ValueError(f"the type of retyped has {type.width} lanes, and {self.label} has {self.width}")
        if isinstance(type, Real) and type.gap:
            raise ValueError(f"the gap of retyped is {type.gap}, and it must be 0: only numbers() can promise a gap")
        return Stream(ops.Linear((ops.scaled_identity(self.width),), type), (self,))

    # lanes -------------------------------------------------------------------------------------
    def __getitem__(self, lanes: int | slice | Sequence[int] | np.ndarray) -> Stream:
        index = _lanes(self, lanes)
        pick = sparse.csr_array((np.ones(len(index)), (range(len(index)), index)), shape=(len(index), self.width))
        return Stream(ops.Linear((pick,), ops.with_width(self.type, len(index))), (self,))

    def sum(self) -> Stream:
        """The sum over the lanes."""
        return np.ones((1, self.width)) @ self

    # arithmetic --------------------------------------------------------------------------------
    def __add__(self, other: Stream | Number) -> Stream:
        return _combine((1, self), (1, other))

    def __sub__(self, other: Stream | Number) -> Stream:
        return _combine((1, self), (-1, other))

    def __rsub__(self, other: Number) -> Stream:
        return _combine((-1, self), (1, other))

    def __neg__(self) -> Stream:
        return _combine((-1, self))

    def __pos__(self) -> Stream:
        return self

    def __iter__(self) -> Iterator[Stream]:
        """The lanes, one by one."""
        return (self[i] for i in range(self.width))

    def __mul__(self, other: Stream | Number) -> Stream:
        if isinstance(other, Stream):
            return Stream(ops.Multiply(), (self, other))
        return self._times(number(other, "a factor", _OPERAND))

    def __truediv__(self, other: Number) -> Stream:
        if isinstance(other, Stream):
            raise TypeError(
                f"{self.label} is divided by a stream, and only a number can divide; use lookup() for tables"
            )
        divisor = Fraction(number(other, "the divisor"))
        if not divisor:
            raise ValueError(f"{self.label} is divided by 0, and a number other than 0 is needed")
        return self._times(1 / divisor)

    def _times(self, factor: Exact) -> Stream:
        """The value times a number; one that no float holds stays a constant, which the check pass refuses by name."""
        if ops.is_dyadic(factor):
            return _combine((factor, self))
        return Stream(ops.Multiply(), (self, constant(factor, self.width)))

    def __floordiv__(self, other: int) -> Stream:
        return Stream(ops.FloorDivide(self._divisor(other)), (self,))

    def __mod__(self, other: int) -> Stream:
        return Stream(ops.Modulo(self._divisor(other)), (self,))

    def __divmod__(self, other: int) -> tuple[Stream, Stream]:
        return self // other, self % other

    def _divisor(self, other: object) -> int:
        if isinstance(other, Stream):
            raise TypeError(f"{self.label} is divided by a stream, and only a positive integer can divide")
        return integer(other, f"the divisor of {self.label}", 1)

    def __rtruediv__(self, other: object) -> Stream:
        raise TypeError(
            f"{shown(other)} is divided by {self.label}, and only a number can divide; use lookup() for tables"
        )

    __rfloordiv__ = __rmod__ = __rdivmod__ = __rtruediv__

    def __rpow__(self, other: object) -> Stream:
        raise TypeError(
            f"{shown(other)} has the exponent {self.label}, and only a number can be one; use lookup() for tables"
        )

    __radd__ = __add__
    __rmul__ = __mul__

    def __rmatmul__(self, matrix: np.ndarray | sparse.sparray) -> Stream:
        return Stream(ops.Linear((given_matrix(matrix, "the matrix before @", ("rows", str(self.width))),)), (self,))

    def __matmul__(self, other: object) -> Stream:
        raise TypeError(f"{self.label} stands before @, and the matrix must: write matrix @ stream")

    def __pow__(self, exponent: int) -> Stream:
        exponent = integer(exponent, f"the exponent of {self.label}", 1)
        return self._powers({1: self}, exponent)

    def _powers(self, known: dict[int, Stream], exponent: int) -> Stream:
        """x^n = x^⌈n/2⌉ · x^⌊n/2⌋: ⌈log2 n⌉ products deep, each power computed once."""
        if exponent not in known:
            larger, smaller = (self._powers(known, n) for n in (exponent - exponent // 2, exponent // 2))
            known[exponent] = larger * smaller
        return known[exponent]

    def square(self) -> Stream:
        """The value times itself, lane by lane; as `** 2`."""
        return self * self

    # time --------------------------------------------------------------------------------------
    def shift(self, k: int = 1) -> Stream:
        """The value k positions earlier; zeros before the start."""
        return Stream(ops.Shift(integer(k, "k of shift")), (self,))

    def cumsum(self) -> Stream:
        """The sum of all values so far, the present one included."""
        return Stream(ops.Cumsum(), (self,))

    # nonlinear maps of one position --------------------------------------------------------------
    def relu(self) -> Stream:
        """The value where it is positive, else 0, lane by lane."""
        return Stream(ops.Relu(), (self,))

    def clip(self, lo: int, hi: int) -> Stream:
        """The value, but `lo` where it is less and `hi` where it is more, lane by lane; lo ≤ hi are integers."""
        return Stream(ops.Clip(integer(lo, "lo of clip"), integer(hi, "hi of clip")), (self,))

    def heaviside(self, at: int) -> Stream:
        """1 where the value exceeds `at`, else 0."""
        return self > at

    def one_hot(self, n: int) -> Stream:
        """OneHot(n) of an Int in 0…n−1 (absent for other values)."""
        return Stream(ops.OneHotOf(integer(n, "n of one_hot", 1, MOST_LANES)), (self,))

    def lookup(self, table: Sequence[int] | Mapping[int, int]) -> Stream:
        """table[value] of an Int (0 for values outside 0…len(table)−1), or of a OneHot (0 where it is absent)."""
        entries = _table(table)
        return Stream(ops.Lookup(entries, isinstance(self.type, OneHot)), (self,))

    # comparisons and logic ---------------------------------------------------------------------
    def _compare(self, symbol: str, other: Stream | Number) -> Stream:
        if symbol in ("==", "!=") and isinstance(other, Stream) and {type(self.type), type(other.type)} == {OneHot}:
            same = Stream(ops.SameSymbol(), (self, other))
            return same if symbol == "==" else ~same
        return Stream(ops.Compare(symbol), both(self, other))

    def __gt__(self, other: Stream | Number) -> Stream:
        return self._compare(">", other)

    def __ge__(self, other: Stream | Number) -> Stream:
        return self._compare(">=", other)

    def __lt__(self, other: Stream | Number) -> Stream:
        return self._compare("<", other)

    def __le__(self, other: Stream | Number) -> Stream:
        return self._compare("<=", other)

    def __eq__(self, other: Stream | Number) -> Stream:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: Stream | Number) -> Stream:  # type: ignore[override]
        return self._compare("!=", other)

    def __and__(self, other: Stream) -> Stream:
        return Stream(ops.And(), (self, other))

    def __or__(self, other: Stream) -> Stream:
        return Stream(ops.Or(), _flags(self, other))

    def __rand__(self, other: Stream) -> Stream:
        return Stream(ops.And(), (other, self))

    def __ror__(self, other: Stream) -> Stream:
        return Stream(ops.Or(), _flags(other, self))

    def __xor__(self, other: Stream) -> Stream:
        """Exactly one of two flags."""
        if not isinstance(other, Stream):
            raise TypeError(f"the operand of ^ beside {self.label} is {shown(other)}, and a flag is needed")
        return (self | other) & ~(self & other)

    __rxor__ = __xor__

    def __abs__(self) -> Stream:
        return self.relu() + (-self).relu()

    def __invert__(self) -> Stream:
        return Stream(ops.Not(), (self,))


@contextmanager
def standing_for(stream: Stream) -> Iterator[None]:
    """Streams that are made within stand for this one: they have its source line, and messages call them by it."""
    token = _standing_for.set(stream)
    try:
        yield
    finally:
        _standing_for.reset(token)


def given_stream(given: object, what: str) -> Stream:
    """What was given, where it is a stream; TypeError otherwise, which names `constant` where it is a number."""
    if isinstance(given, Stream):
        return given
    hint = "; constant(…) makes a stream of a number" if isinstance(given, numbers.Real) else ""
    raise TypeError(f"{what} is {shown(given)}, and a stream is needed{hint}")


def _checked(operation: ops.Operation, inputs: Sequence[Stream]) -> tuple[Stream, ...]:
    """The inputs, where each is a stream; TypeError names the argument by the operation's own word for it."""
    instance(inputs, Sequence, f"the inputs of {operation.symbol}", "a tuple of streams")
    for i, given in enumerate(inputs):
        if not isinstance(given, Stream):
            words = list(signature(operation.result_type).parameters)
            word = words[min(i, len(words) - 1)] if words else f"input {i}"
            given_stream(given, f"{word!r} of {operation.symbol}")
    return tuple(inputs)


def _of_one_type(some: Sequence[Stream], others: Sequence[Stream]) -> bool:
    """Whether each has the very type of the other: equal ones may differ in the kinds of their lanes."""
    return len(some) == len(others) and all(a.type is b.type for a, b in zip(some, others, strict=True))


def _result_type(operation: ops.Operation, inputs: tuple[Stream, ...]) -> Type:
    """The type of the operation over these inputs; TypeError where it takes another number of them."""
    if operation.arity not in (None, len(inputs)):
        needed = f"{operation.arity}, one for each matrix"
        raise TypeError(f"{operation.symbol} was given {len(inputs)} inputs, and it needs {needed}")
    types = [s.type for s in inputs]
    try:
        return operation.result_type(*types)
    except TypeError:
        words = signature(operation.result_type)
        if _takes(words, len(inputs)):
            raise
    needed = ", ".join(str(word).partition(":")[0] for word in words.parameters.values())
    raise TypeError(f"{operation.symbol} was given {len(inputs)} inputs, and it takes ({needed})")


def _one_line(name: object) -> str:
    """The name of a stream; TypeError or ValueError for one that would begin lines of what is shown of the circuit."""
    text = instance(name, str, "name", "a text")
    if text.splitlines() not in ([], [text]):
        raise ValueError(f"name is {shown(text)}, and a text of one line is needed")
    return text


def _takes(words: Signature, count: int) -> bool:
    """Whether so many arguments fit."""
    try:
        words.bind(*range(count))
    except TypeError:
        return False
    return True


def _lanes(stream: Stream, lanes: int | slice | Sequence[int] | np.ndarray) -> np.ndarray:
    """The lanes that an index picks; IndexError outside the stream's."""
    try:
        index = np.atleast_1d(np.arange(stream.width)[lanes])
    except (IndexError, TypeError, ValueError):
        raise IndexError(f"lane {shown(lanes)} of {stream.label} is none of its lanes 0 … {stream.width - 1}") from None
    if index.ndim != 1 or not len(index):
        raise IndexError(f"{shown(lanes)} picks no lanes of {stream.label}, and at least one is needed")
    return index


def _table(table: Sequence[int] | Mapping[int, int]) -> tuple[Exact, ...]:
    """The entries for 0, 1, … of a look-up."""
    single = isinstance(table, str) or isinstance(table, np.ndarray) and not table.ndim
    if single or not isinstance(table, (Mapping, Sequence, np.ndarray)):
        raise TypeError(f"the table of lookup is {shown(table)}, and a list or a dict of integers is needed")
    if isinstance(table, Mapping):
        missing = next((i for i in range(len(table)) if i not in table), None)
        if missing is not None:
            raise ValueError(
                f"the table of lookup has {len(table)} entries and none for {missing}; it needs 0 … {len(table) - 1}"
            )
    return tuple(number(table[i], f"entry {i} of the table of lookup") for i in range(len(table)))


def constant(value: Number, width: int = 1) -> Stream:
    """The same number on every lane of every position (0 before the start)."""
    exact = Fraction(number(value, "the value of constant"))
    return Stream(ops.Constant((exact,) * integer(width, "width of constant", 1, MOST_LANES)))


def _stream(value: Stream | Number, width: int) -> Stream:
    """A stream as it is, a number as a constant of this width."""
    return value if isinstance(value, Stream) else constant(number(value, "an operand", _OPERAND), width)


def both(a: Stream | Number, b: Stream | Number) -> tuple[Stream, Stream]:
    """Two operands of which one may be a number, or a single lane that meets every lane of the other."""
    width = max((s.width for s in (a, b) if isinstance(s, Stream)), default=1)
    return _spread(_stream(a, width), width), _spread(_stream(b, width), width)


def _flags(a: Stream, b: Stream) -> tuple[Stream, Stream]:
    """The operands of a disjunction, where both are streams: a number is no flag."""
    return both(a, b) if isinstance(a, Stream) and isinstance(b, Stream) else (a, b)


def _spread(stream: Stream, width: int) -> Stream:
    """A single lane copied to this width; other streams as they are."""
    if not stream.width == 1 < width:
        return stream
    return Stream(ops.Linear((ops.copies(width),), ops.with_width(stream.type, width)), (stream,))


def _combine(*terms: tuple[Number, Stream | Number]) -> Stream:
    """Σ coefficient·term; numbers become constants, single lanes are copied to the common width."""
    width = max(term.width for _, term in terms if isinstance(term, Stream))
    matrices, inputs = [], []
    for coefficient, term in terms:
        stream = _stream(term, width)
        spread = ops.copies if stream.width == 1 < width else ops.scaled_identity
        matrices.append(spread(width, ops.exact_number(number(coefficient, "a factor", _OPERAND))))
        inputs.append(stream)
    return Stream(ops.Linear(tuple(matrices)), inputs)
