"""Pass 3, represent: rewrite every operation in the few that a block computes.

After this pass a circuit holds only sources (Embed, Constant), Linear, Shift, Relu,
Multiply, Cumsum, Latch, GateSum and additive MemoryRead, and every value that is stored
in a state is non-negative (silu passes nothing else). How a value is carried is
decided here:

- a function of one token is folded into the embedding, whatever it takes;
- integers are compared, selected and looked up by differences of rectifiers;
- ±1 codewords are carried as bits: c = 2·bits − present. The memory is linear in what it
  stores, so the map back is applied behind it, and for a balanced readout the `present`
  lane has weight 0 and is dropped later;
- other signed values are carried as the pair relu(x), relu(−x).

Each rewriting is an identity of exact arithmetic; `tests/passes/test_represent.py` checks it
against the operation's own definition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import singledispatchmethod
from math import ceil, floor, prod
from typing import TypeAlias

import numpy as np
from scipy import sparse

from compiler.analysis.domain import power_of_two
from compiler.analysis.domains import Domains
from compiler.analysis.exact_matrices import EXACT, InexactWeight, exact_float, exact_rows, product, total
from compiler.analysis.linear_form import ONE, linear_form
from compiler.analysis.units import array_unit
from compiler.context import Context
from compiler.errors import CompileError
from compiler.exactness.saturation import rising_count
from compiler.language import operations as ops
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.operations import Sees
from compiler.language.stream import Stream, concatenate, constant
from compiler.language.types import Bool, Code, OneHot
from compiler.passes.conditions import need_flags, need_one_hot, need_whole
from compiler.passes.logic import Logic

Restored: TypeAlias = Callable[[Stream, int], Stream]
_LARGEST_DENSE_TABLE = 1 << 25
MOST_STEPS = 1 << 12  # thresholds of a division by a constant
MOST_LEVELS = 1 << 16  # of a running maximum: a latch each


def represent(circuit: Circuit, context: Context) -> Circuit:
    """The same circuit over the core operations; `context.domains` learns the domains of the new streams."""
    rewriter = _Rewriter(context.domains, circuit.alphabet)
    reasons = []
    for stream in circuit.streams:
        try:
            rewriter.rewrite(stream)
        except (NotImplementedError, InexactWeight) as error:
            reasons.append((stream, str(error)))
            rewriter.core[stream] = stream
    if reasons:
        raise CompileError(reasons)
    return replace(circuit, output=rewriter.core[circuit.output])


class _Rewriter:
    """One rule per operation, from the operation and its rewritten inputs to a core stream."""

    def __init__(self, domains: Domains, alphabet: Alphabet):
        self.domains = domains
        self.alphabet = alphabet
        self.core: dict[Stream, Stream] = {}
        self._tables: dict[Stream, sparse.csr_array | None] = {}
        self.logic = Logic()
        self._dressed: set[Stream] = set()

    def rewrite(self, stream: Stream) -> None:
        inputs = tuple(self.core[s] for s in stream.inputs)
        result = self._fold(stream, inputs)
        if result is None:
            result = self._ruled(stream.operation, *inputs)
        self._inherit(result, stream)
        self.domains.meet(result, self.domains.of(stream))
        self.core[stream] = result

    def _inherit(self, result: Stream, source: Stream) -> None:
        """New streams carry the name and the source line of the operation they stand for."""
        pending = [result]
        while pending:
            new = pending.pop()
            if new is not ONE and new not in self._dressed:
                self._dressed.add(new)
                new.origin = source.origin
                new.name = new.name or source.label
                pending += new.inputs

    # Folding of token functions -------------------------------------------------------------------

    def table(self, stream: Stream) -> sparse.csr_array | None:
        """The (vocabulary × width) table of a stream that is a function of the present token, else None."""
        pending = [stream]
        while pending:
            node = pending[-1]
            missing = [] if node.operation.sees is Sees.PAST else [s for s in node.inputs if s not in self._tables]
            if missing and node not in self._tables:
                pending += missing
            else:
                pending.pop()
                if node not in self._tables:
                    self._tables[node] = self._table(node)
        return self._tables[stream]

    def _table(self, stream: Stream) -> sparse.csr_array | None:
        """The table, from those of the inputs."""
        operation = stream.operation
        if isinstance(operation, ops.Embed):
            return operation.table
        if operation.sees is Sees.PAST or all(self._tables[s] is None for s in stream.inputs):
            return None  # a past, or no inputs, or none of a token
        if any(self._tables[s] is None and not isinstance(s.operation, ops.Constant) for s in stream.inputs):
            return None
        size = self.alphabet.size
        operands = [self._operand(s, size) for s in stream.inputs]
        if isinstance(operation, ops.Linear):
            return total([product(t, sparse.csr_array(m.T)) for t, m in zip(operands, operation.matrices, strict=True)])
        if isinstance(operation, ops.And):
            return ops.exact_matrix(operands[0].multiply(operands[1]))
        if max(s.width for s in (*stream.inputs, stream)) * size > _LARGEST_DENSE_TABLE:
            return None
        return self._evaluated(stream, operands)

    def _evaluated(self, stream: Stream, operands: list[sparse.csr_array]) -> sparse.csr_array:
        """The operation on whole tables: in float64 where nothing can round, else in Fractions."""
        sizes = [float(abs(t).max()) if t.nnz else 0.0 for t in operands]
        units = [min(1.0, float(array_unit(t.data) or 1)) for t in operands]
        reach = max(float(self.domains.of(stream).bound), prod(2 * max(1.0, s) for s in sizes)) * max(
            t.shape[1] for t in operands
        )
        arrays = [t.toarray()[None] for t in operands]
        if reach <= EXACT * prod(units):
            return ops.exact_matrix(stream.operation.evaluate(*arrays)[0])
        return exact_rows(stream.operation.evaluate(*(np.vectorize(Fraction, otypes=[object])(a) for a in arrays))[0])

    def _operand(self, stream: Stream, size: int) -> sparse.csr_array:
        if isinstance(stream.operation, ops.Constant):
            return ops.exact_matrix(np.tile([exact_float(v) for v in stream.operation.values], (size, 1)))
        return self._tables[stream]

    def _fold(self, stream: Stream, inputs: tuple[Stream, ...]) -> Stream | None:
        """An embedding for a nonlinear function of one token (at any one lag), else None."""
        operation = stream.operation
        if operation.sees is not Sees.POINTWISE or not operation.foldable:
            return None
        lags = {s.operation.k if isinstance(s.operation, ops.Shift) else 0 for s in inputs}
        if len(lags) != 1 or (lags != {0} and not operation.zero_preserving):
            return None
        (lag,) = lags
        here = Stream(operation, [s.inputs[0] if lag else s for s in inputs])
        table = self.table(here)
        if table is None:
            return None
        return _shifted(Stream(ops.Embed(self.alphabet, table, stream.type), (), stream.label), lag)

    # Rules ------------------------------------------------------------------------------------

    def _ruled(self, operation: ops.Operation, *inputs: Stream) -> Stream:
        """The rule of exactly this operation: a subclass may mean something else than its parent."""
        if type(operation) not in type(self).__dict__["rule"].dispatcher.registry:
            if operation.core:
                return Stream(operation, inputs)
            raise NotImplementedError(f"there is no lowering of {operation.symbol} yet")
        return self.rule(operation, *inputs)

    @singledispatchmethod
    def rule(self, operation: ops.Operation, *inputs: Stream) -> Stream:
        raise NotImplementedError(f"there is no lowering of {operation.symbol} yet")

    @rule.register(ops.Linear)
    @rule.register(ops.Emit)
    @rule.register(ops.Constant)
    @rule.register(ops.Numbers)
    def _(self, operation: ops.Operation, *inputs: Stream) -> Stream:
        return Stream(operation, inputs)

    @rule.register
    def _(self, operation: ops.Shift, x: Stream) -> Stream:
        if isinstance(x.operation, ops.Shift):
            return self._delayed(x.inputs[0], operation.k + x.operation.k)
        return self._delayed(x, operation.k)

    def _delayed(self, x: Stream, lag: int) -> Stream:
        """x(t − lag); zeros where no sequence is long enough."""
        return _shifted(x, lag) if lag < self.domains.max_length else constant(0, x.width)

    @rule.register
    def _(self, operation: ops.Embed, *inputs: Stream) -> Stream:
        if isinstance(operation.type, Code) and _holds_signs(operation.table):
            return _as_bits(operation)
        return Stream(operation, inputs)

    @rule.register
    def _(self, operation: ops.Position, *inputs: Stream) -> Stream:
        """Stock models have no lane for it, so it is counted."""
        return constant(1).cumsum()

    @rule.register
    def _(self, operation: ops.Clip, x: Stream) -> Stream:
        if rising_count(linear_form(x), self.domains):  # falling ramps stay exact where the count saturates
            return operation.hi - (operation.hi - x).relu() + (operation.lo - x).relu()
        return (x - operation.lo).relu() - (x - operation.hi).relu() + operation.lo

    @rule.register
    def _(self, operation: ops.Compare, a: Stream, b: Stream) -> Stream:
        need_whole(self.domains, a, b)
        above, below = self._positive(a - b), self._positive(b - a)
        flags = {
            ">": above,
            "<": below,
            ">=": 1 - below,
            "<=": 1 - above,
            "==": 1 - above - below,
            "!=": above + below,
        }[operation.relation]
        return flags.retyped(Bool(a.width))

    def _positive(self, x: Stream) -> Stream:
        """[x > 0] for integers; of a growing count by falling ramps, which stay exact where the count saturates."""
        if x.width == 1 and rising_count(linear_form(x), self.domains):
            return 1 - _step(1 - x)
        return _step(x)

    @rule.register
    def _(self, operation: ops.SameSymbol, a: Stream, b: Stream) -> Stream:
        need_one_hot(self.domains, a, b)
        return (a + b - 1).relu().sum().retyped(Bool())

    @rule.register
    def _(self, operation: ops.And, a: Stream, b: Stream) -> Stream:
        need_flags(self.domains, a, b)
        return self.logic.conjunction(a, b)

    @rule.register
    def _(self, operation: ops.Or, a: Stream, b: Stream) -> Stream:
        need_flags(self.domains, a, b)
        return self.logic.disjunction(a, b)

    @rule.register
    def _(self, operation: ops.Not, a: Stream) -> Stream:
        need_flags(self.domains, a)
        return self.logic.negation(a)

    @rule.register
    def _(self, operation: ops.Select, condition: Stream, yes: Stream, no: Stream) -> Stream:
        need_flags(self.domains, condition)
        change = yes - no
        if not self.domains.of(change).step:
            return no + condition * change  # a mask by rectifiers is exact on a lattice only
        return no + masked(self.domains, change, condition)

    @rule.register
    def _(self, operation: ops.Lookup, x: Stream) -> Stream:
        """Linear between the integers that can occur: first value + Σ bend_j · relu(x − j); 0 beside the table."""
        if operation.symbols:
            return exact_rows([np.array([int(v) for v in operation.table], dtype=object)]) @ x
        need_whole(self.domains, x)
        domain, size = self.domains.of(x), len(operation.table)
        first, last = max(ceil(domain.lo), -1), min(floor(domain.hi), size)
        if first > last:
            return constant(0, 1)
        inside = [int(operation.table[j]) if 0 <= j < size else 0 for j in range(first, last + 1)]
        values = np.array(inside, dtype=object)
        bends = np.diff(np.diff(values, append=values[-1]), prepend=0)
        used = np.flatnonzero(bends)
        if not len(used):
            return constant(int(values[0]))
        kinks = np.ones((len(used), 1)) @ x - Stream(ops.Constant(tuple(Fraction(first + int(j)) for j in used)))
        return exact_rows([bends[used]]) @ kinks.relu() + int(values[0])

    @rule.register
    def _(self, operation: ops.OneHotOf, x: Stream) -> Stream:
        """The second difference of relu(x − j), j = −1 … n."""
        need_whole(self.domains, x)
        n = operation.n
        ramps = (np.ones((n + 2, 1)) @ x - Stream(ops.Constant(tuple(Fraction(j) for j in range(-1, n + 1))))).relu()
        second = sparse.diags_array([1.0, -2.0, 1.0], offsets=[0, 1, 2], shape=(n, n + 2))
        return (second @ ramps).retyped(OneHot(n))

    @rule.register
    def _(self, operation: ops.FloorDivide, x: Stream) -> Stream:
        """⌊lo/n⌋ + Σ_j [x ≥ j·n] over the multiples of n in (lo, hi]."""
        need_whole(self.domains, x)
        domain, n = self.domains.of(x), operation.divisor
        first, last = floor(domain.lo / n), floor(domain.hi / n)
        if (last - first) * x.width > MOST_STEPS:
            raise NotImplementedError(
                f"it takes a threshold for each multiple of {n} that its operand can reach, "
                f"{(last - first) * x.width} in "
                f"all between {domain.lo} and {domain.hi}, and {MOST_STEPS} are the most; "
                f"divide by {ceil((domain.hi - domain.lo) / max(1, MOST_STEPS // x.width))} or more, "
                "or clip() its operand"
            )
        if first == last:
            return constant(first, x.width)
        spread = sparse.kron(sparse.eye_array(x.width), np.ones((last - first, 1)), format="csr") @ x
        multiples = tuple(Fraction(j * n) for j in range(first + 1, last + 1)) * x.width
        levels = Stream(ops.Constant(multiples))
        add_up = sparse.kron(sparse.eye_array(x.width), np.ones((1, last - first)), format="csr")
        return add_up @ _step(spread - levels + 1) + first

    @rule.register
    def _(self, operation: ops.Modulo, x: Stream) -> Stream:
        quotient = self.rule(ops.FloorDivide(operation.divisor), x)
        return x - operation.divisor * quotient

    @rule.register
    def _(self, operation: ops.Decode, x: Stream) -> Stream:
        """relu(<c, x> − q + 1): for integers |x_i| ≤ 1 with Σ|x_i| ≤ q, <c, x> reaches q for x = c alone."""
        need_whole(self.domains, x)
        known = self.domains.of(x)
        if known.bound > 1 or known.l1 > operation.norm:
            raise NotImplementedError(
                f"its operand {x.label} can hold numbers up to {known.bound}, Σ over lanes ≤ {known.l1}; a codeword "
                f"has entries −1, 0 and 1, and {operation.norm} of them are not 0"
            )
        return (operation.words @ x - (operation.norm - 1)).relu().retyped(OneHot(operation.words.shape[0]))

    @rule.register
    def _(self, operation: ops.Min, a: Stream, b: Stream) -> Stream:
        return b - (b - a).relu() if rising_count(linear_form(a), self.domains) else a - (a - b).relu()

    @rule.register
    def _(self, operation: ops.Max, a: Stream, b: Stream) -> Stream:
        return b + (a - b).relu()

    @rule.register
    def _(self, operation: ops.Lti, x: Stream) -> Stream:
        reach = enumerate(operation.kernel[: self.domains.max_length])
        taps = [tap * self._delayed(x, k) for k, tap in reach if tap]
        return sum(taps[1:], start=taps[0]) if taps else constant(0, x.width)

    # Memories ---------------------------------------------------------------------------------

    @rule.register(ops.FadingSum)
    @rule.register(ops.Cumsum)
    def _(self, operation: ops.Operation, x: Stream) -> Stream:
        back, stored = self._storable(x)
        return back(Stream(operation, (stored,)), 1)

    @rule.register(ops.Latch)
    @rule.register(ops.SumWhere)
    def _(self, operation: ops.Latch, value: Stream, when: Stream) -> Stream:
        need_flags(self.domains, when)
        back, stored = self._storable(value)
        return back(Stream(operation, (stored, when)), when.width)

    @rule.register
    def _(self, operation: ops.RunningMax, value: Stream, when: Stream) -> Stream:
        """Lane by lane: lo, if anything was seen, and the levels above it that were reached."""
        need_flags(self.domains, when)
        need_whole(self.domains, value)
        if value.width == 1:
            return self._largest_so_far(value, when)
        whens = list(when) if when.width > 1 else [when] * value.width
        return concatenate(*(self._largest_so_far(v, f) for v, f in zip(value, whens, strict=True)))

    def _largest_so_far(self, value: Stream, when: Stream) -> Stream:
        """lo · [was anything seen] + Σ_v [was a value > v seen] over lo ≤ v < hi, one latch per level (unary).

        lo is 0 where no value is negative: 0 is what stands before there is a value.
        """
        domain = self.domains.of(value)
        lo, hi = min(domain.lo, 0), domain.hi
        if hi - lo > MOST_LEVELS:
            raise NotImplementedError(
                f"it keeps a latch for each value from {lo} up to {hi}, and {MOST_LEVELS} is the most; clip() its value"
            )
        if lo == hi == 0:
            return 0 * value
        first = int(lo) * Stream(ops.Latch(), (constant(1), when)) if lo else None
        if lo == hi:
            return first
        levels = Stream(ops.Constant(tuple(Fraction(v) for v in range(int(lo), int(hi)))))
        reached = _step(np.ones((levels.width, 1)) @ value - levels).retyped(Bool(levels.width))
        above = Stream(ops.Latch(), (constant(1), self.logic.conjunction(reached, when))).sum()
        return above if first is None else first + above

    @rule.register
    def _(self, operation: ops.FadingMemory, value: Stream, key: Stream, query: Stream) -> Stream:
        back, stored = self._storable(value)
        return back(Stream(operation, (stored, key, query)), 1)

    @rule.register
    def _(self, operation: ops.MemoryRead, value: Stream, key: Stream, query: Stream, *when: Stream) -> Stream:
        need_flags(self.domains, *when)
        if operation.policy != "sum":
            need_one_hot(self.domains, key, query)
        literals = [flag for w in when for flag in self.logic.conjuncts(w)]
        key, literals = self._absorb(key, literals)
        if operation.policy == "last":
            gate = self.logic.conjunction(key, *literals)
            back, stored = self._storable(value)
            return back(Stream(ops.GateSum(), (Stream(ops.Latch(), (stored, gate)), query)), 1)
        if operation.policy in ("sum", "once"):
            value, literals = self._absorb(value, literals)
            value, key = self._conditioned(value, key, literals)
        back, stored = self._storable(value)
        writes = 1 if operation.policy == "once" else operation.writes
        if operation.policy == "first":
            stored, writes = self._first_only(stored, key, literals), 1
        return back(Stream(ops.MemoryRead("sum", writes), (stored, key, query)), 1)

    def _conditioned(self, value: Stream, key: Stream, literals: list[Stream]) -> tuple[Stream, Stream]:
        """(value, key) of which one is 0 where a condition fails; flags take it for free, integers by a mask."""
        if not literals:
            return value, key
        if self.domains.of(key).is_flag:
            return value, self.logic.conjunction(key, *literals)
        if self.domains.of(value).is_flag:
            return self.logic.conjunction(value, *literals), key
        condition = self.logic.conjunction(*literals)
        if self.domains.of(value).step:
            return masked(self.domains, value, condition), key
        if self.domains.of(key).step:
            return value, masked(self.domains, key, condition)
        return condition * value, key

    def _first_only(self, value: Stream, key: Stream, literals: list[Stream]) -> Stream:
        """The value at the first write under its key, else 0.

        n counts the writes under the present key, this one included, so 2w − n is 1 at the
        first write (w = 1) and at most 0 elsewhere: at later writes and where nothing is written.
        (With w = 1 and no key it is 2; what is stored then goes under a column that is 0.)
        """
        write = self.logic.conjunction(*literals) if literals else constant(1)
        n = Stream(ops.MemoryRead("sum"), (write, key, key), "writes_so_far")
        return masked(self.domains, value, 2 * write - n)

    def _absorb(self, port: Stream, literals: list[Stream]) -> tuple[Stream, list[Stream]]:
        """Drop each condition that the port's own support implies; mask the port by one of its own token.

        A write is a product over its ports, so a condition on the token that a port reads
        belongs to that port.
        """
        left = []
        for literal in literals:
            table, lag = self._window(port)
            flag, flag_lag = self._window(literal)
            if table is None or flag is None or lag != flag_lag or (flag.data != 1).any():
                left.append(literal)
                continue
            if (ops.exact_matrix(table.multiply(flag)) != table).nnz:
                port = _shifted(self._masked(port.inputs[0] if lag else port, flag), lag)
        return port, left

    def _masked(self, port: Stream, flag: sparse.csr_array) -> Stream:
        """A function of one token where a flag (vocabulary × 1) of that token holds; a linear map stays one."""
        operation = port.operation
        if isinstance(operation, ops.Linear) and len(port.inputs) == 1:
            return Stream(operation, (self._masked(port.inputs[0], flag),), port.name)
        table = ops.exact_matrix(self.table(port).multiply(flag))
        return Stream(ops.Embed(self.alphabet, table, port.type), (), f"{port.label}.masked")

    def _window(self, stream: Stream) -> tuple[sparse.csr_array | None, int]:
        """(table, lag) of a stream that is a function of one token, k positions back."""
        if isinstance(stream.operation, ops.Shift):
            return self.table(stream.inputs[0]), stream.operation.k
        return self.table(stream), 0

    def _storable(self, value: Stream) -> tuple[Restored, Stream]:
        """(back, stored): non-negative lanes to store, and the linear map from what is read to the value.

        A state is linear in what it stores, so `value = M · lanes` may be stored as the
        lanes, if these are non-negative and not more than the rectifier pairs would be.
        """
        if not self.domains.of(value).step:
            return _restorer(None), value  # real numbers are split by the next pass
        form = linear_form(value)
        signed = self.domains.of(value).lo < 0
        bases = [(atom, lag, matrix) for (atom, lag), matrix in form.items()]
        plain = all(self.domains.of(atom).lo >= 0 for atom, _, _ in bases)
        lanes = sum(atom.width for atom, _, _ in bases)
        if signed and plain and 0 < lanes <= 2 * value.width:
            stored = [_shifted(atom, lag) for atom, lag, _ in bases]
            back = sparse.hstack([matrix for _, _, matrix in bases], format="csr")
            return _restorer(back), stored[0] if len(stored) == 1 else concatenate(*stored)
        if signed:
            eye = sparse.eye_array(value.width)
            return _restorer(sparse.hstack([eye, -eye], format="csr")), concatenate(value, -value).relu()
        return _restorer(None), value


def _restorer(matrix: sparse.csr_array | None) -> Restored:
    """The map (stream, copies) → matrix · stream, applied to each of `copies` groups of lanes."""

    def back(stream: Stream, copies: int) -> Stream:
        if matrix is None:
            return stream
        return sparse.kron(sparse.eye_array(copies), matrix, format="csr") @ stream

    return back


def _holds_signs(table: sparse.csr_array) -> bool:
    """Whether every row is a ±1 word or zeros, and some row has a −1."""
    full = np.isin(np.diff(table.indptr), (0, table.shape[1])).all()
    return bool(full and (abs(table.data) == 1).all() and (table.data < 0).any())


def _as_bits(operation: ops.Embed) -> Stream:
    """A ±1 code as 2·bits − present, on non-negative lanes (present: whether the token has a codeword)."""
    table = operation.table
    length = table.shape[1]
    bits = table.maximum(0)
    here = sparse.csr_array((abs(table).sum(axis=1) > 0).astype(float).reshape(-1, 1))
    lanes = Stream(
        ops.Embed(operation.alphabet, ops.exact_matrix(sparse.hstack([bits, here])), Bool(length + 1)), (), "bits"
    )
    back = sparse.hstack([2 * sparse.eye_array(length), -np.ones((length, 1))])
    return Stream(ops.Linear((ops.exact_matrix(back),), operation.type), (lanes,))


def _shifted(stream: Stream, lag: int) -> Stream:
    return stream.shift(lag) if lag else stream


def masked(domains: Domains, x: Stream, flag: Stream) -> Stream:
    """x where the flag is 1, 0 where it is at most 0: relu(±x + M(flag − 1)) for a power of two M ≥ |x|."""
    domain = domains.of(x)
    room = power_of_two(domain.bound) * (flag - 1)
    positive = (x + room).relu()
    return positive - (room - x).relu() if domain.lo < 0 else positive


def _step(x: Stream) -> Stream:
    """[x > 0] for integers: relu(x) − relu(x − 1)."""
    return x.relu() - (x - 1).relu()
