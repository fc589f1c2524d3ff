"""What an author declares of a stream, and whether it can be shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from compiler.analysis.affine_form import affine_form
from compiler.analysis.domains.known import Domains
from compiler.analysis.written_once import doubt
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import inputs_first, operation_of
from compiler.language.operations import Sees, Source
from compiler.language.stream import Stream
from compiler.language.types import Bool, Code, Int, OneHot, Real, Type

_ZERO = Fraction(0)
_MOST_VALUES = 1 << 22  # of a function of one token, over the alphabet


@dataclass(frozen=True)
class _Range:
    """lo … hi, the sum over lanes of absolute values, and a number of which all are multiples (0: none is known)."""

    lo: Fraction
    hi: Fraction
    l1: Fraction
    step: Fraction


def check_claims(streams: Iterable[Stream], domains: Domains) -> None:
    """Find the domains of a circuit as written; CompileError where its author declared a type that cannot be shown."""
    found = {s: domains.of(s) for s in streams}  # all of them before the first claim, which may sharpen some
    reasons = [(s, reason) for s in found if (reason := unshown(s, domains))]
    if reasons:
        raise CompileError(reasons)


def unshown(stream: Stream, domains: Domains) -> str | None:
    """Why the type of a stream does not follow from its operation and what it reads; None where it does."""
    operation, type = stream.operation, stream.type
    unmet = operation.unmet(*(domains.of(s) for s in stream.inputs))
    if unmet is not None:
        return unmet
    if operation.write_policy == "once":
        return doubt(stream, domains)
    declared = operation.declared is not None
    if operation.maps is not None and not declared:
        return None
    if operation.maps is not None and isinstance(type, Code) and not _same_code(stream):
        return "it is declared a Code, and what it reads is not shown to hold words of that codebook"
    found = domains.before_its_type(stream)
    known = _Range(found.lo, found.hi, found.l1, found.step)
    if _whole(type, known) and (not declared or _within(type, known)):
        return None
    by_token = _by_token(stream, domains) if declared else None
    if by_token is not None and _whole(type, by_token) and _within(type, by_token):
        return None
    shown = f"it is declared {type}, and all that can be shown is {known.lo}…{known.hi}"
    return shown if isinstance(type, Real) else f"{shown}, Σ over lanes ≤ {known.l1}, step {known.step}"


def _whole(type: Type, known: _Range) -> bool:
    """Whether all numbers are integers, where the type says so."""
    return not type.integral or known.step > 0 and known.step.denominator == 1


def _within(type: Type, known: _Range) -> bool:
    """Whether all numbers are within the bounds of the type; a position without any holds 0."""
    lo, hi = (type.lo, type.hi) if isinstance(type, (Int, Real)) else (None, None)
    if isinstance(type, (Bool, OneHot)):
        lo, hi = 0, 1
    low = lo is None or known.lo >= min(Fraction(lo), _ZERO)
    high = hi is None or known.hi <= max(Fraction(hi), _ZERO)
    return low and high and (known.l1 <= 1 or not isinstance(type, OneHot))


def _by_token(stream: Stream, domains: Domains) -> _Range | None:
    """What a function of one token, this or an earlier one, holds for any token of the language; None of others."""
    form = affine_form(stream)
    atoms, lags = [atom for atom, _ in form], {lag for _, lag in form}
    read = (s.operation.token_alphabet for s in inputs_first(atoms, _read))
    alphabets = {alphabet for alphabet in read if alphabet is not None}
    if len(lags) != 1 or len(alphabets) != 1 or not all(map(_of_one_token, inputs_first(atoms, _read))):
        return None
    (alphabet,) = alphabets
    language = domains.language
    ids = range(alphabet.size) if language is None else sorted({t for e in language.edges for t in e.tokens})
    if len(ids) * sum(s.width for s in inputs_first(atoms, _read)) > _MOST_VALUES:
        return None
    circuit = Circuit("tokens", Stream(ops.Linear(tuple(form.values())), atoms), None, 1)
    (values,) = interpret(circuit, np.array(ids).reshape(-1, 1)).values()
    rows: list[list[Fraction]] = [[Fraction(value) for value in row] for row in values[:, 0]]
    flat = [_ZERO, *(value for row in rows for value in row)]
    step = Fraction(1, lcm(*(value.denominator for value in flat)))
    return _Range(min(flat), max(flat), max((sum(map(abs, row), _ZERO) for row in rows), default=_ZERO), step)


def _read(stream: Stream) -> tuple[Stream, ...]:
    return stream.inputs


def _of_one_token(stream: Stream) -> bool:
    """Whether an operation gives the same for the same token, where its operands do."""
    operation = stream.operation
    return operation.sees is not Sees.PAST and operation.source is not Source.NUMBERS


def _same_code(stream: Stream) -> bool:
    """Whether a stream that is declared a Code is one that was a Code of the same words before."""
    (source, *others), (matrix, *_) = stream.inputs, operation_of(stream, ops.Linear).matrices
    if others or not isinstance(source.type, Code) or not isinstance(stream.type, Code):
        return False
    same = np.array_equal(source.type.book.words, stream.type.book.words)
    return same and (matrix != ops.scaled_identity(source.width)).nnz == 0
