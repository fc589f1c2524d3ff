"""Streams: the nodes of a circuit graph, and the operators that build them.

A stream is one value (a vector of `width` numbers) per position. It is an operation
applied to earlier streams, so a circuit is a directed acyclic graph by construction.
Building never raises for ill-typed operands: the check pass reports all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from inspect import signature
from numbers import Rational
from typing import TypeVar

import numpy as np
from scipy import sparse

from compiler.language import operations as ops
from compiler.language.arguments import Exact, Number, instance, integer, number, shown
from compiler.language.codebook import Codebook
from compiler.language.origin import source_line
from compiler.language.types import Bool, OneHot, Type

_LONGEST_OPERAND = 28  # characters of an operand in the expression that names a stream
_Operation = TypeVar("_Operation", bound=ops.Operation)
_DEEPEST = 3  # operations in such an expression, one inside the other


class Stream:
    """One value per position: an operation and the streams it reads.

    Operators: `+ - *` (numbers, other streams), `matrix @ s`, `s ** n`, `s // n` and `s % n`
    (n a positive integer, rounded down as in Python), comparisons
    (giving Bool), `& | ~` on Bool, `s[i]` / `s[ids]` to pick lanes.
    """

    __array_ufunc__ = None  # so that `array @ stream` comes to __rmatmul__
    __hash__ = object.__hash__

    def __init__(self, operation: ops.Operation, inputs: Sequence[Stream] = (), name: str | None = None):
        self.operation = operation
        self.inputs = _checked(operation, inputs)
        self.type: Type = operation.result_type(*(s.type for s in self.inputs))
        self.name = name
        self.origin = source_line()
        self._expression: str | None = None

    def named(self, name: str) -> Stream:
        """Give the stream the name that its lanes and channels carry in the weights."""
        instance(name, str, "name", "a text")
        self.name = name
        return self

    @property
    def label(self) -> str:
        """The name, or the expression that the stream was written as, cut short."""
        if self.name:
            return self.name
        if self._expression is None:
            self._expression = _expression(self, _DEEPEST)
        return self._expression

    @property
    def width(self) -> int:
        return self.type.width

    def __repr__(self) -> str:
        return f"<{self.label}: {self.type} at {self.origin}>"

    def __bool__(self) -> bool:
        raise TypeError(f"stream {self.label!r} has no truth value while the circuit is built; use & | ~ and select()")

    def retyped(self, type: Type) -> Stream:
        """The same numbers under a sharper type; a circuit is refused where the type cannot be shown."""
        return Stream(ops.Linear((ops.scaled_identity(self.width),), type), (self,))

    # lanes -------------------------------------------------------------------------------------
    def __getitem__(self, lanes: int | slice | Sequence[int]) -> Stream:
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

    def __iter__(self) -> Iterator[Stream]:
        """The lanes, one by one."""
        return (self[i] for i in range(self.width))

    def __mul__(self, other: Stream | Number) -> Stream:
        if isinstance(other, Stream):
            return Stream(ops.Multiply(), (self, other))
        return _combine((other, self))

    def __truediv__(self, other: Number) -> Stream:
        if isinstance(other, Stream):
            raise TypeError(
                f"{self.label} is divided by a stream, and only a number can divide; use lookup() for tables"
            )
        divisor = Fraction(number(other, "the divisor"))
        if not divisor:
            raise ValueError(f"{self.label} is divided by 0, and a number other than 0 is needed")
        return _combine((1 / divisor, self))

    def __floordiv__(self, other: int) -> Stream:
        return Stream(ops.FloorDivide(self._divisor(other)), (self,))

    def __mod__(self, other: int) -> Stream:
        return Stream(ops.Modulo(self._divisor(other)), (self,))

    def _divisor(self, other: object) -> int:
        if isinstance(other, Stream):
            raise TypeError(f"{self.label} is divided by a stream, and only a positive integer can divide")
        return integer(other, f"the divisor of {self.label}", 1)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rmatmul__(self, matrix: np.ndarray | sparse.sparray) -> Stream:
        if not sparse.issparse(matrix) and np.ndim(matrix) != 2:
            raise ValueError(
                f"the matrix before @ has {np.ndim(matrix)} axes, and two are needed: (rows, {self.width})"
            )
        return Stream(ops.Linear((ops.exact_matrix(matrix),)), (self,))

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
        return Stream(ops.Relu(), (self,))

    def clip(self, lo: int, hi: int) -> Stream:
        return Stream(ops.Clip(integer(lo, "lo of clip"), integer(hi, "hi of clip")), (self,))

    def heaviside(self, at: int) -> Stream:
        """1 where the value exceeds `at`, else 0."""
        return self > at

    def one_hot(self, n: int) -> Stream:
        """OneHot(n) of an Int in 0…n−1 (absent for other values)."""
        return Stream(ops.OneHotOf(integer(n, "n of one_hot", 1)), (self,))

    def lookup(self, table: Sequence[int] | Mapping[int, int]) -> Stream:
        """table[value] of an Int (0 for values outside 0…len(table)−1), or of a OneHot (0 where it is absent)."""
        entries = _table(table)
        return Stream(ops.Lookup(entries, isinstance(self.type, OneHot)), (self,))

    # comparisons and logic ---------------------------------------------------------------------
    def _compare(self, symbol: str, other: Stream | Number) -> Stream:
        right = _stream(other, self.width)
        if symbol in ("==", "!=") and isinstance(self.type, OneHot) and isinstance(right.type, OneHot):
            same = Stream(ops.SameSymbol(), (self, right))
            return same if symbol == "==" else ~same
        return Stream(ops.Compare(symbol), (self, right))

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
        return Stream(ops.Or(), (self, other))

    def __rand__(self, other: Stream) -> Stream:
        return Stream(ops.And(), (other, self))

    def __ror__(self, other: Stream) -> Stream:
        return Stream(ops.Or(), (other, self))

    def __xor__(self, other: Stream) -> Stream:
        """Exactly one of two flags."""
        return (self | other) & ~(self & other)

    def __abs__(self) -> Stream:
        return self.relu() + (-self).relu()

    def __invert__(self) -> Stream:
        return Stream(ops.Not(), (self,))


def _expression(stream: Stream, depth: int) -> str:
    """`depth == 3` for what was written so; long operands and those further than `depth` deep are cut short."""
    if stream.name:
        return stream.name
    if not stream.inputs:
        return stream.operation.written()
    if not depth:
        return "…"
    operands = [_shortened(_expression(source, depth - 1)) for source in stream.inputs[:4]]
    if len(stream.inputs) > len(operands):
        return f"{stream.operation.symbol}({', '.join(operands)}, …)"
    return stream.operation.written(*operands)


def _shortened(expression: str) -> str:
    if len(expression) <= _LONGEST_OPERAND:
        return expression
    head = expression.partition("(")[0]
    return f"{head}(…)" if head.isidentifier() and expression.endswith(")") else "…"


def _checked(operation: ops.Operation, inputs: Sequence[Stream]) -> tuple[Stream, ...]:
    """The inputs, where each is a stream; TypeError names the argument by the operation's own word for it."""
    for i, given in enumerate(inputs):
        if not isinstance(given, Stream):
            words = list(signature(operation.result_type).parameters)
            word = words[min(i, len(words) - 1)] if words else f"input {i}"
            hint = "; constant(…) makes a stream of a number" if isinstance(given, Rational) else ""
            raise TypeError(f"{word!r} of {operation.symbol} is {shown(given)}, and a stream is needed{hint}")
    return tuple(inputs)


def _lanes(stream: Stream, lanes: int | slice | Sequence[int]) -> np.ndarray:
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
    if not isinstance(table, (Mapping, Sequence, np.ndarray)) or isinstance(table, str):
        raise TypeError(f"the table of lookup is {shown(table)}, and a list or a dict of integers is needed")
    if isinstance(table, Mapping):
        missing = next((i for i in range(len(table)) if i not in table), None)
        if missing is not None:
            raise ValueError(
                f"the table of lookup has {len(table)} entries and none for {missing}; it needs 0 … {len(table) - 1}"
            )
    return tuple(number(table[i], f"entry {i} of the table of lookup") for i in range(len(table)))


def operation_of(stream: Stream, kind: type[_Operation]) -> _Operation:
    """The operation of a stream that is known to be of this kind; TypeError for another."""
    if not isinstance(stream.operation, kind):
        raise TypeError(f"{stream.label} is computed by {stream.operation.symbol}, and not by {kind.__name__}")
    return stream.operation


def with_operation(streams: Iterable[Stream], kind: type[_Operation]) -> list[tuple[Stream, _Operation]]:
    """The streams whose operation is of this kind, each with it."""
    return [(stream, stream.operation) for stream in streams if isinstance(stream.operation, kind)]


def inputs_first(stream: Stream, read: Callable[[Stream], Iterable[Stream]]) -> list[Stream]:
    """The streams that are reached from this one along `read`, each after all that it reads; without recursion."""
    order, seen = [], set()
    stack = [(stream, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((source, False) for source in read(node))
    return order


def constant(value: Number, width: int = 1) -> Stream:
    """The same number on every lane of every position (0 before the start)."""
    exact = Fraction(number(value, "the value of constant"))
    return Stream(ops.Constant((exact,) * integer(width, "width of constant", 1)))


def _stream(value: Stream | Number, width: int) -> Stream:
    """A stream as it is, a number as a constant of this width."""
    return value if isinstance(value, Stream) else constant(number(value, "an operand"), width)


def both(a: Stream | Number, b: Stream | Number) -> tuple[Stream, Stream]:
    """Two operands of which one may be a number."""
    width = max((s.width for s in (a, b) if isinstance(s, Stream)), default=1)
    return _stream(a, width), _stream(b, width)


def _combine(*terms: tuple[Number, Stream | Number]) -> Stream:
    """Σ coefficient·term; numbers become constants, single lanes are copied to the common width."""
    width = max(term.width for _, term in terms if isinstance(term, Stream))
    matrices, inputs = [], []
    for coefficient, term in terms:
        stream = _stream(term, width)
        spread = ops.copies if stream.width == 1 < width else ops.scaled_identity
        matrices.append(spread(width, ops.exact_number(number(coefficient, "a factor"))))
        inputs.append(stream)
    return Stream(ops.Linear(tuple(matrices)), inputs)


def concatenate(*streams: Stream) -> Stream:
    """All lanes of the streams side by side."""
    if not streams:
        raise ValueError("concatenate was given no streams, and at least one is needed")
    widths = [instance(s, Stream, "an input of concatenate", "a stream").width for s in streams]
    starts = np.cumsum([0, *widths])
    matrices = tuple(
        sparse.csr_array((np.ones(w), (range(start, start + w), range(w))), shape=(sum(widths), w))
        for start, w in zip(starts, widths, strict=False)
    )
    flags = all(isinstance(s.type, Bool) for s in streams)
    return Stream(ops.Linear(matrices, Bool(sum(widths)) if flags else None), streams)


def minimum(a: Stream | Number, b: Stream | Number) -> Stream:
    """The smaller of two numbers, lane by lane; of real numbers within `Compiled.error_bound`."""
    return Stream(ops.Min(), both(a, b))


def maximum(a: Stream | Number, b: Stream | Number) -> Stream:
    """The larger of two numbers, lane by lane; of real numbers within `Compiled.error_bound`."""
    return Stream(ops.Max(), both(a, b))


def select(condition: Stream, yes: Stream | Number, no: Stream | Number = 0) -> Stream:
    """`yes` where the condition holds, else `no`."""
    return Stream(ops.Select(), (condition, *both(yes, no)))


def latch(value: Stream, when: Stream, first: bool = False) -> Stream:
    """The value at the last (first) position where `when` held; zeros before there is one."""
    if first:
        instance(when, Stream, "'when' of latch", "a stream")
        when = when & (when.cumsum() == 1)
    return Stream(ops.Latch(), (value, when))


def latch_bank(value: Stream, index: Stream, when: Stream | None = None) -> Stream:
    """One latch per alternative of a OneHot index: lane k·w + i is lane i of the last value stored at k."""
    return Stream(ops.Latch(), (value, index if when is None else index & when))


def sum_where(value: Stream, when: Stream) -> Stream:
    """For each flag, the sum of the values at positions where it held: lane k·w + i is lane i of the sum under
    flag k.
    """
    return Stream(ops.SumWhere(), (value, when))


def decode(code: Stream, book: Codebook) -> Stream:
    """Which codeword a stream holds, as a OneHot; absent where it holds none."""
    instance(book, Codebook, "book of decode", "a codebook")
    return Stream(ops.Decode(ops.exact_matrix(book.words)), (code,))


def dot(a: Stream, b: Stream) -> Stream:
    """Σ over the lanes of a·b at the present position, as one number."""
    return Stream(ops.Dot(), (a, b))


def fading_sum(value: Stream, decay: Number) -> Stream:
    """Σ_{s≤t} decay^(t−s) · value_s, lane by lane: a state that keeps this factor (in (0, 1)) of itself at every step.

    A real number: the module gives it within `Compiled.error_bound`.
    """
    return Stream(ops.FadingSum(Fraction(number(decay, "decay of fading_sum"))), (value,))


def silu_product(a: Stream, b: Stream, scale: Number = 128) -> Stream:
    """a·b as Lemma 1 of paper B computes it, by four values of silu, within (|a| + |b|)⁴/(48·scale²) and rounding.

    scale: λ, a power of two; about 128 times the largest |a| and |b| is best in float32. `a * b` is exact.
    """
    return Stream(ops.SiluProduct(Fraction(number(scale, "scale of silu_product"))), (a, b))


def scaled_sum(value: Stream, weight: Stream, gate: Stream) -> Stream:
    """gate_t · Σ_{s≤t} value_s · weight_s, lane by lane, in one block.

    Where `value` is 0 at all earlier positions this is the product of three numbers.
    """
    return Stream(ops.ScaledSum(), (value, weight, gate))


def count(when: Stream, reset: Stream) -> Stream:
    """How often `when` held since `reset` last did; at a reset itself the count is 0."""
    return Stream(ops.Count(), (when, reset))


def present(when: Stream) -> Stream:
    """Whether `when` held at any position so far, the present one included; lane by lane."""
    instance(when, Stream, "'when' of present", "a stream")
    return Stream(ops.Latch(), (constant(1), when)).retyped(Bool(when.width))


def running_max(value: Stream, when: Stream) -> Stream:
    """The largest value so far among positions where `when` holds; 0 before there is one."""
    return Stream(ops.RunningMax(), (value, when))


def lti(stream: Stream, kernel: Sequence[Number]) -> Stream:
    """The causal convolution Σ_k kernel[k]·stream(t − k)."""
    return Stream(ops.Lti(tuple(Fraction(number(k, "a tap of lti")) for k in kernel)), (stream,))
