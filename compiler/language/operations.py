"""The operations of the language: for each, its typing rules and its one meaning.

`evaluate` is the definition that every lowering is tested against. It maps arrays of
shape (batch, time, width) to an array of that kind, and uses only additions, products,
comparisons and selections, so that the same code is exact on Python integers and
Fractions (object arrays) and on float64 within the integer range of float64.

`problems` gives the reasons why an operation is ill-typed or not causal; the check
pass gathers them over the whole circuit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from numbers import Rational

import numpy as np
from scipy import sparse

from compiler.language.alphabet import Alphabet
from compiler.language.types import Bool, Code, Int, OneHot, Real, Type

Array = np.ndarray


def exact_number(value: Rational) -> float:
    """The float64 equal to a rational; ValueError when there is none (exact-arithmetic E12)."""
    exact = Fraction(value)
    if not is_dyadic(exact):
        raise ValueError(f"weight {value} is not a dyadic rational, so no float holds it exactly; use k/2^n")
    return float(exact)


def is_dyadic(value: Rational) -> bool:
    """Whether a float64 holds the number exactly."""
    return Fraction(float(value)) == Fraction(value)


def _not_dyadic(what: str, values: tuple[Fraction, ...]) -> list[str]:
    """The complaint about numbers that no float holds; [] where there are none."""
    bad = [str(v) for v in values if not is_dyadic(v)]
    return [f"{what} {', '.join(bad)} is no dyadic rational, so no float holds it exactly; use k/2^n"] if bad else []


def exact_matrix(matrix: Array | sparse.sparray) -> sparse.csr_array:
    """A matrix of dyadic rationals as sparse float64, every entry exact."""
    if not sparse.issparse(matrix) and np.asarray(matrix).dtype == object:
        matrix = np.vectorize(exact_number, otypes=[float])(matrix)
    result = sparse.csr_array(matrix, dtype=np.float64)
    result.sum_duplicates()
    result.eliminate_zeros()
    if not np.isfinite(result.data).all():
        raise ValueError("a matrix holds an infinity or a NaN, and weights must be numbers")
    return result


@lru_cache(maxsize=1 << 16)
def scaled_identity(width: int, factor: float = 1.0) -> sparse.csr_array:
    """factor · 1 (width × width), one shared matrix for each; not to be changed in place."""
    places = np.arange(width + 1)
    return exact_matrix(sparse.csr_array((np.full(width, factor), places[:-1], places), shape=(width, width)))


@lru_cache(maxsize=1 << 12)
def copies(width: int, factor: float = 1.0) -> sparse.csr_array:
    """The (width × 1) matrix that copies factor · a single lane to every lane, shared as well."""
    return exact_matrix(np.full((width, 1), factor))


def with_width(type: Type, width: int) -> Type:
    """The type of some of the lanes of a stream of this type."""
    if isinstance(type, (Bool, OneHot)):
        return Bool(width)
    if type.integral:
        return Int(width=width)
    return Real(width=width)


def apply(matrix: sparse.csr_array, x: Array) -> Array:
    """matrix · x over the last axis: (batch, time, w_in) to (batch, time, w_out), exactly."""
    if x.dtype != object:
        flat = x.reshape(-1, x.shape[-1])
        return np.asarray((matrix @ flat.T).T).reshape(*x.shape[:-1], matrix.shape[0])
    out = np.zeros((*x.shape[:-1], matrix.shape[0]), dtype=object)
    coo = matrix.tocoo()
    for i, j, weight in zip(coo.row, coo.col, coo.data, strict=True):
        exact = Fraction(float(weight))
        out[..., i] += (int(exact) if exact.denominator == 1 else exact) * x[..., j]
    return out


def _shifted(x: Array, k: int) -> Array:
    out = np.zeros_like(x)
    if k < x.shape[1]:
        out[:, k:] = x[:, : x.shape[1] - k]
    return out


@dataclass(frozen=True, eq=False)
class Operation:
    """One node of a circuit; subclasses are the words of the language."""

    @property
    def symbol(self) -> str:
        return type(self).__name__.lower()

    def result_type(self, *inputs: Type) -> Type:
        raise NotImplementedError

    def problems(self, *inputs: Type) -> list[str]:
        return []

    def evaluate(self, *inputs: Array) -> Array:
        raise NotImplementedError


# Sources ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Embed(Operation):
    """A function of the present token: row `id` of a (vocabulary × width) table of dyadic numbers."""

    alphabet: Alphabet
    table: sparse.csr_array = field(repr=False)
    type: Type = None  # type: ignore[assignment]

    def result_type(self) -> Type:
        return self.type

    def problems(self) -> list[str]:
        if self.table.shape != (self.alphabet.size, self.type.width):
            return [f"its table is {self.table.shape}, and {self.alphabet.size} tokens × {self.type.width} lanes are needed"]
        return []

    def evaluate(self, tokens: Array) -> Array:
        """tokens: (batch, time) ids."""
        return self.table[tokens.reshape(-1)].toarray().reshape(*tokens.shape, self.table.shape[1])


@dataclass(frozen=True, eq=False)
class Numbers(Operation):
    """A numeric input (no tokens), one value a position, in the declared range of its type."""

    type: Type

    def result_type(self) -> Type:
        return self.type


@dataclass(frozen=True)
class Constant(Operation):
    """The same numbers at every position; before the start of the sequence they are 0 like all else."""

    values: tuple[Fraction, ...]

    @property
    def symbol(self) -> str:
        return "one" if set(self.values) == {1} else "constant"

    def result_type(self) -> Type:
        if set(self.values) <= {0, 1}:
            return Bool(len(self.values))
        if all(v.denominator == 1 for v in self.values):
            return Int(int(min(self.values)), int(max(self.values)), len(self.values))
        return Real(float(min(self.values)), float(max(self.values)), len(self.values))

    def problems(self) -> list[str]:
        return _not_dyadic("its value", self.values)

    def evaluate(self, like: Array) -> Array:
        """like: any (batch, time, …) array of the run; gives its dtype and shape."""
        out = np.zeros((*like.shape[:2], len(self.values)), dtype=like.dtype)
        for i, value in enumerate(self.values):
            out[..., i] = value if like.dtype == object else float(value)
        return out


@dataclass(frozen=True)
class Position(Operation):
    """The position itself, 1 at the first token; stock language models have no lane for it, so the compiler counts."""

    def result_type(self) -> Type:
        return Int(1, None)

    def evaluate(self, like: Array) -> Array:
        steps = np.arange(1, like.shape[1] + 1).astype(like.dtype)
        return np.broadcast_to(steps[None, :, None], (like.shape[0], like.shape[1], 1)).copy()


# Linear in the inputs ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Linear(Operation):
    """Σ_i matrix_i · input_i, all at the present position."""

    matrices: tuple[sparse.csr_array, ...] = field(repr=False)
    type: Type | None = None

    def result_type(self, *inputs: Type) -> Type:
        if self.type is not None:
            return self.type
        width = self.matrices[0].shape[0]
        whole = all(t.integral for t in inputs) and not any((m.data % 1).any() for m in self.matrices)
        return Int(width=width) if whole else Real(width=width)

    def problems(self, *inputs: Type) -> list[str]:
        return [
            f"input {i} has {t.width} lanes and its matrix has {m.shape[1]} columns"
            for i, (t, m) in enumerate(zip(inputs, self.matrices, strict=True))
            if t.width != m.shape[1]
        ]

    def evaluate(self, *inputs: Array) -> Array:
        total = apply(self.matrices[0], inputs[0])
        for matrix, x in zip(self.matrices[1:], inputs[1:], strict=True):
            total = total + apply(matrix, x)
        return total


@dataclass(frozen=True, eq=False)
class Emit(Linear):
    """Σ_i matrix_i · input_i for flags: the scores of a list of rules."""

    def problems(self, *inputs: Type) -> list[str]:
        return super().problems(*inputs) + _needs(Bool, "a Bool", *inputs)


@dataclass(frozen=True)
class Shift(Operation):
    """The value k ≥ 0 positions earlier; zeros before the start."""

    k: int

    def result_type(self, x: Type) -> Type:
        return x

    def problems(self, x: Type) -> list[str]:
        return [f"shift({self.k}) would read {-self.k} positions ahead; only the past can be read"] if self.k < 0 else []

    def evaluate(self, x: Array) -> Array:
        return _shifted(x, self.k)


@dataclass(frozen=True)
class Lti(Operation):
    """Σ_k kernel[k] · x(t − k): a fixed causal filter on every lane."""

    kernel: tuple[Fraction, ...]

    def result_type(self, x: Type) -> Type:
        whole = x.integral and all(k.denominator == 1 for k in self.kernel)
        return Int(width=x.width) if whole else Real(width=x.width)

    def problems(self, x: Type) -> list[str]:
        return _not_dyadic("its tap", self.kernel)

    def evaluate(self, x: Array) -> Array:
        scale = (lambda k: k) if x.dtype == object else float
        return sum((scale(tap) * _shifted(x, k) for k, tap in enumerate(self.kernel)), start=np.zeros_like(x))


# Functions of one position -------------------------------------------------------------------------


def _needs(kind: type | tuple[type, ...], what: str, *inputs: Type) -> list[str]:
    return [f"input {i} is {t}, and {what} is needed" for i, t in enumerate(inputs) if not isinstance(t, kind)]


def _same_width(*inputs: Type) -> list[str]:
    widths = [t.width for t in inputs]
    return [] if len(set(widths)) == 1 else [f"its inputs have {' and '.join(map(str, widths))} lanes; they must agree"]


@dataclass(frozen=True)
class Relu(Operation):
    """max(x, 0) on every lane."""

    def result_type(self, x: Type) -> Type:
        return Int(0, None, x.width) if x.integral else Real(0, None, x.width)

    def evaluate(self, x: Array) -> Array:
        return np.maximum(x, 0)


@dataclass(frozen=True)
class Half(Relu):
    """relu(x), of which only half(x) − half(−x) = x is ever used: how a block carries real numbers.

    Any function with that property does; a real block computes silu(Sx)/S (exact-arithmetic E3).
    The split_reals pass alone makes these, always in such pairs, and chooses the scale S.
    """

    scale: float = 128.0


@dataclass(frozen=True)
class Clip(Operation):
    """min(max(x, lo), hi) on every lane."""

    lo: int
    hi: int

    def result_type(self, x: Type) -> Type:
        return Int(self.lo, self.hi, x.width) if x.integral else Real(self.lo, self.hi, x.width)

    def problems(self, x: Type) -> list[str]:
        return [f"clip({self.lo}, {self.hi}) has its bounds the wrong way round"] if self.lo > self.hi else []

    def evaluate(self, x: Array) -> Array:
        return np.minimum(np.maximum(x, self.lo), self.hi)


_COMPARISONS = {
    ">": np.greater,
    ">=": np.greater_equal,
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


@dataclass(frozen=True)
class Compare(Operation):
    """Whether a ∘ b, lane by lane, for integers."""

    relation: str

    @property
    def symbol(self) -> str:
        return f"compare[{self.relation}]"

    def result_type(self, a: Type, b: Type) -> Type:
        return Bool(a.width)

    def problems(self, a: Type, b: Type) -> list[str]:
        found = _same_width(a, b)
        if not (a.integral and b.integral):
            found.append(f"it compares {a} with {b}; comparisons are exact on integers only")
        return found

    def evaluate(self, a: Array, b: Array) -> Array:
        return _COMPARISONS[self.relation](a, b).astype(np.int64).astype(a.dtype)


@dataclass(frozen=True)
class SameSymbol(Operation):
    """1 where two OneHots of the same alternatives are both present and equal: Σ_i a_i·b_i."""

    def result_type(self, a: Type, b: Type) -> Type:
        return Bool()

    def problems(self, a: Type, b: Type) -> list[str]:
        return _needs(OneHot, "a OneHot", a, b) + _same_width(a, b)

    def evaluate(self, a: Array, b: Array) -> Array:
        return (a * b).sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class And(Operation):
    """Both flags; a single flag is shared by all lanes of the other operand. Some of a one-hot is one-hot."""

    def result_type(self, a: Type, b: Type) -> Type:
        width = max(a.width, b.width)
        some_of_one_hot = any(isinstance(t, OneHot) and t.width == width for t in (a, b))
        return OneHot(width) if some_of_one_hot else Bool(width)

    def problems(self, a: Type, b: Type) -> list[str]:
        found = _needs((Bool, OneHot), "a Bool or a OneHot", a, b)
        return found if 1 in (a.width, b.width) else found + _same_width(a, b)

    def evaluate(self, a: Array, b: Array) -> Array:
        return a * b


@dataclass(frozen=True)
class Or(Operation):
    """Either flag, lane by lane."""

    def result_type(self, a: Type, b: Type) -> Type:
        return Bool(a.width)

    def problems(self, a: Type, b: Type) -> list[str]:
        return _needs((Bool, OneHot), "a Bool or a OneHot", a, b) + _same_width(a, b)

    def evaluate(self, a: Array, b: Array) -> Array:
        return np.maximum(a, b)


@dataclass(frozen=True)
class Not(Operation):
    """1 − flag at every position of the sequence."""

    def result_type(self, a: Type) -> Type:
        return Bool(a.width)

    def problems(self, a: Type) -> list[str]:
        return _needs((Bool, OneHot), "a Bool or a OneHot", a)

    def evaluate(self, a: Array) -> Array:
        return 1 - a


@dataclass(frozen=True)
class Select(Operation):
    """The second input where the condition holds, else the third."""

    def result_type(self, condition: Type, yes: Type, no: Type) -> Type:
        flags = (Bool, OneHot)
        if isinstance(yes, flags) and isinstance(no, flags):
            whole = isinstance(yes, OneHot) and isinstance(no, OneHot) and condition.width == 1
            return OneHot(yes.width) if whole else Bool(yes.width)
        return Int(width=yes.width) if yes.integral and no.integral else Real(width=yes.width)

    def problems(self, condition: Type, yes: Type, no: Type) -> list[str]:
        found = _needs(Bool, "a Bool condition", condition) + _same_width(yes, no)
        if condition.width not in (1, yes.width):
            found.append(f"its condition has {condition.width} lanes, and 1 or {yes.width} are needed")
        return found

    def evaluate(self, condition: Array, yes: Array, no: Array) -> Array:
        return no + condition * (yes - no)


@dataclass(frozen=True)
class Lookup(Operation):
    """table[x] of an Int (the last entry beyond the table, the first below 0), or of a OneHot (0 if absent).

    symbols: whether x is a OneHot.
    """

    table: tuple[int, ...]
    symbols: bool = False

    def result_type(self, x: Type) -> Type:
        return Int(min(self.table + (0,)), max(self.table + (0,)))

    def problems(self, x: Type) -> list[str]:
        if not self.table or any(v != int(v) for v in self.table):
            return [f"its table {self.table} must hold integers, at least one"]
        if self.symbols:
            return [] if x.width == len(self.table) else [f"its table has {len(self.table)} entries for OneHot({x.width})"]
        return _needs((Int, Bool), "an Int, a Bool or a OneHot", x) + ([] if x.width == 1 else ["it looks up one lane at a time"])

    def evaluate(self, x: Array) -> Array:
        entries = np.array(self.table, dtype=x.dtype)
        if self.symbols:
            return (x * entries).sum(axis=-1, keepdims=True)
        index = np.clip(x, 0, len(self.table) - 1).astype(np.int64)
        return entries[index]


@dataclass(frozen=True)
class OneHotOf(Operation):
    """OneHot(n) of an Int; absent where the value is outside 0…n−1."""

    n: int

    def result_type(self, x: Type) -> Type:
        return OneHot(self.n)

    def problems(self, x: Type) -> list[str]:
        return _needs((Int, Bool), "an Int", x) + ([] if x.width == 1 else [f"it has {x.width} lanes, and one is needed"])

    def evaluate(self, x: Array) -> Array:
        return (x == np.arange(self.n)).astype(np.int64).astype(x.dtype)


@dataclass(frozen=True, eq=False)
class Decode(Operation):
    """OneHot of the codeword that is present: relu(<c, x> − q + 1) for words c with <c, c> = q and <c, c'> ≤ q − 1.

    That is 1 for x = c, and 0 for every other word and for absence.
    """

    words: sparse.csr_array = field(repr=False)

    def result_type(self, x: Type) -> Type:
        return OneHot(self.words.shape[0])

    def problems(self, x: Type) -> list[str]:
        if x.width != self.words.shape[1]:
            return [f"it decodes words of {self.words.shape[1]} lanes, and its input has {x.width}"]
        gram = (self.words @ self.words.T).toarray()
        others = gram - np.diag(np.full(len(gram), np.inf))
        if (np.diag(gram) != self.norm).any() or others.max() > self.norm - 1:
            return ["its words must have one length <c, c> = q and <c, c'> ≤ q − 1; use codebook.signs or codebook.balanced"]
        return []

    @property
    def norm(self) -> int:
        """q = <c, c>."""
        return int(abs(self.words[[0]]).sum())

    def evaluate(self, x: Array) -> Array:
        return np.maximum(apply(self.words, x) - (self.norm - 1), 0)


@dataclass(frozen=True)
class Min(Operation):
    """The smaller of two integers, lane by lane."""

    def result_type(self, a: Type, b: Type) -> Type:
        return Int(width=a.width) if a.integral and b.integral else Real(width=a.width)

    def problems(self, a: Type, b: Type) -> list[str]:
        return _same_width(a, b)

    def evaluate(self, a: Array, b: Array) -> Array:
        return np.minimum(a, b)


@dataclass(frozen=True)
class Max(Min):
    """The larger of two integers, lane by lane."""

    def evaluate(self, a: Array, b: Array) -> Array:
        return np.maximum(a, b)


@dataclass(frozen=True)
class Multiply(Operation):
    """The product, lane by lane; a single lane multiplies all lanes of the other operand."""

    def result_type(self, a: Type, b: Type) -> Type:
        width = max(a.width, b.width)
        return Int(width=width) if a.integral and b.integral else Real(width=width)

    def problems(self, a: Type, b: Type) -> list[str]:
        return [] if 1 in (a.width, b.width) else _same_width(a, b)

    def evaluate(self, a: Array, b: Array) -> Array:
        return a * b


@dataclass(frozen=True)
class Dot(Operation):
    """Σ_n a_n · b_n over the lanes of one position: one number. Quadratic forms xᵀQx are dot(x, Qx)."""

    def result_type(self, a: Type, b: Type) -> Type:
        return Int() if a.integral and b.integral else Real()

    def problems(self, a: Type, b: Type) -> list[str]:
        return _same_width(a, b)

    def evaluate(self, a: Array, b: Array) -> Array:
        return (a * b).sum(axis=-1, keepdims=True)


# Memory of the past -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cumsum(Operation):
    """The running sum, the present position included (a state column with A = 0)."""

    def result_type(self, x: Type) -> Type:
        return Int(width=x.width) if x.integral else Real(width=x.width)

    def evaluate(self, x: Array) -> Array:
        return np.cumsum(x, axis=1)


@dataclass(frozen=True)
class ScaledSum(Operation):
    """gate_t · Σ_{s≤t} value_s · weight_s, lane by lane: a state column written through Δ and read through the gate."""

    def result_type(self, value: Type, weight: Type, gate: Type) -> Type:
        whole = value.integral and weight.integral and gate.integral
        return Int(width=value.width) if whole else Real(width=value.width)

    def problems(self, value: Type, weight: Type, gate: Type) -> list[str]:
        return _same_width(value, weight, gate)

    def evaluate(self, value: Array, weight: Array, gate: Array) -> Array:
        return gate * np.cumsum(value * weight, axis=1)


def _stored(value: Array, when: Array, t: int, bank: Array) -> Array:
    """The bank (batch, flags, width) after step t, whose flagged entries take the value."""
    flag = when[:, t][:, :, None]
    return np.where(flag, value[:, t][:, None, :], bank)


@dataclass(frozen=True)
class Latch(Operation):
    """For each flag of `when`, the value at the last position where it held; zeros before.

    inputs: value (w lanes), when (K flags); output K·w lanes, the flag's index outermost.
    A flag holds where it is at least 1, so that passes may hand over an integer that
    exceeds 0 exactly where the flag is 1 (softplus does the rectifying).
    """

    @property
    def forgets(self) -> bool:
        """Whether a write erases what was there."""
        return True

    def result_type(self, value: Type, when: Type) -> Type:
        if isinstance(value, (OneHot, Code)) and when.width == 1:
            return value
        width = value.width * when.width
        if isinstance(value, Bool):
            return Bool(width)
        return Int(width=width) if value.integral else Real(width=width)

    def problems(self, value: Type, when: Type) -> list[str]:
        return _needs((Bool, OneHot), "a Bool or OneHot condition", when)

    def evaluate(self, value: Array, when: Array) -> Array:
        when = when >= 1
        batch, length, width = value.shape
        bank = np.zeros((batch, when.shape[-1], width), dtype=value.dtype)
        out = np.empty((batch, length, when.shape[-1] * width), dtype=value.dtype)
        for t in range(length):
            bank = _stored(value, when, t, bank)
            out[:, t] = bank.reshape(batch, -1)
        return out


@dataclass(frozen=True)
class SumWhere(Latch):
    """For each flag of `when`, the sum of the values at the positions where it held so far; lanes as for Latch.

    A latch that does not forget: the step Δ writes, and there is no decay (paper A, Theorem 1, with Δ for the Heaviside).
    """

    @property
    def forgets(self) -> bool:
        return False

    def result_type(self, value: Type, when: Type) -> Type:
        width = value.width * when.width
        return Int(width=width) if value.integral else Real(width=width)

    def evaluate(self, value: Array, when: Array) -> Array:
        held = (when >= 1).astype(np.int64).astype(value.dtype)
        return np.cumsum((held[..., None] * value[:, :, None, :]).reshape(*value.shape[:2], -1), axis=1)


@dataclass(frozen=True)
class GateSum(Operation):
    """Σ_k gate_k · bank_k: of a bank of K·w lanes, the entry (w lanes) that a one-hot gate selects."""

    def result_type(self, bank: Type, gate: Type) -> Type:
        width = bank.width // gate.width
        return Int(width=width) if bank.integral else Real(width=width)

    def problems(self, bank: Type, gate: Type) -> list[str]:
        found = _needs((Bool, OneHot), "a Bool or OneHot gate", gate)
        if bank.width % gate.width:
            found.append(f"its bank has {bank.width} lanes, which {gate.width} gates do not divide")
        return found

    def evaluate(self, bank: Array, gate: Array) -> Array:
        entries = bank.reshape(*gate.shape, -1)
        return (gate[..., None] * entries).sum(axis=2)


@dataclass(frozen=True)
class MemoryRead(Operation):
    """What a keyed memory answers to a query; a read sees the write of its own position.

    inputs: value (w lanes), key (n), query (n) and, optionally, a flag `when`.
    policy "sum":   Σ_{s≤t} when_s · value_s · <key_s, query_t>   (an outer-product state, A = 0)
    policy "first": the first value written under the queried alternative
    policy "last":  the last one
    Nothing written under the query reads as zeros.

    writes: a bound on the number of writes under one key, where the author can prove a
    better one than the input language gives; None leaves it to the domains pass.
    skip: adds skip · value_t to what is read (y = C·h + D·x̂); the skip-path pass sets it.
    """

    policy: str
    writes: int | None = None
    skip: Fraction = Fraction(0)

    @property
    def symbol(self) -> str:
        return f"memory[{self.policy}]"

    def result_type(self, value: Type, key: Type, query: Type, *when: Type) -> Type:
        if self.skip:
            return Real(width=value.width)
        if self.policy != "sum" or isinstance(value, Code):
            return value
        return Int(width=value.width) if value.integral and key.integral else Real(width=value.width)

    def problems(self, value: Type, key: Type, query: Type, *when: Type) -> list[str]:
        found = _same_width(key, query)
        if self.policy not in ("sum", "first", "last"):
            found.append(f"its write policy is {self.policy!r}, and it must be 'sum', 'first' or 'last'")
        elif self.policy != "sum":
            found += _needs(OneHot, f"a OneHot key (the policy is {self.policy!r})", key, query)
        for flag in when:
            found += _needs(Bool, "a Bool condition", flag)
            found += [] if flag.width == 1 else [f"its condition has {flag.width} lanes, and one is needed"]
        return found

    def evaluate(self, value: Array, key: Array, query: Array, *when: Array) -> Array:
        masked = key * when[0] if when else key
        step = self._add if self.policy == "sum" else self._store
        state = np.zeros((value.shape[0], key.shape[-1], value.shape[-1]), dtype=value.dtype)
        written = np.zeros((value.shape[0], key.shape[-1], 1), dtype=bool)
        out = np.empty_like(value)
        for t in range(value.shape[1]):
            state, written = step(state, written, masked[:, t], value[:, t])
            out[:, t] = (query[:, t, :, None] * state).sum(axis=1)
        if not self.skip:
            return out
        return out + (self.skip if value.dtype == object else float(self.skip)) * value

    def _add(self, state: Array, written: Array, key: Array, value: Array) -> tuple[Array, Array]:
        return state + key[:, :, None] * value[:, None, :], written

    def _store(self, state: Array, written: Array, key: Array, value: Array) -> tuple[Array, Array]:
        here = (key != 0)[:, :, None]
        taken = here & ~written if self.policy == "first" else here
        return np.where(taken, value[:, None, :], state), written | here


@dataclass(frozen=True)
class Count(Operation):
    """How often the first flag held since the second last did (a reset itself counts 0)."""

    def result_type(self, when: Type, reset: Type) -> Type:
        return Int(0, None)

    def problems(self, when: Type, reset: Type) -> list[str]:
        found = _needs(Bool, "a Bool", when, reset)
        return found if when.width == reset.width == 1 else [*found, "it counts single flags, and its inputs have more lanes"]

    def evaluate(self, when: Array, reset: Array) -> Array:
        out = np.empty_like(when)
        running = np.zeros_like(when[:, 0])
        for t in range(when.shape[1]):
            running = (running + when[:, t]) * (1 - reset[:, t])
            out[:, t] = running
        return out


@dataclass(frozen=True)
class RunningMax(Operation):
    """The largest value so far at positions where the flag holds; 0 before there is one."""

    def result_type(self, value: Type, when: Type) -> Type:
        if isinstance(value, (Bool, OneHot)):
            return Bool(value.width)
        return Int(width=value.width) if value.integral else Real(width=value.width)

    def problems(self, value: Type, when: Type) -> list[str]:
        found = _needs(Bool, "a Bool condition", when)
        return found if when.width in (1, value.width) else found + _same_width(value, when)

    def evaluate(self, value: Array, when: Array) -> Array:
        out = np.empty_like(value)
        best = np.zeros_like(value[:, 0])
        seen = np.zeros(best.shape, dtype=bool)
        for t in range(value.shape[1]):
            flag = np.broadcast_to(when[:, t] != 0, best.shape)
            best = np.where(flag & (~seen | (value[:, t] > best)), value[:, t], best)
            seen = seen | flag
            out[:, t] = best
        return out
