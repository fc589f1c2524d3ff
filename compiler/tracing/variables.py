"""Variables: each stream of a circuit as written, with where its value stands in the residual stream of the model.

The passes rewrite a circuit, and note which stream has become which (`Domains.became`). What a stream has become is a
sum of atoms, at present and earlier positions (`analysis.affine_form`), and an atom that a later block reads stands
on lanes. So the value of the stream is a linear map of lanes:

    value(t) = Σ over lags of  matrix · lanes(t − lag)

Where some atom has no lane, `missing` says which number is not there. A codeword or one-hot of which one number is
missing is still told by the others (`decoding`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import ONE, AffineForm
from compiler.analysis.exact_matrices import on_columns
from compiler.compiled import Compiled
from compiler.language.arguments import close_to, shown
from compiler.language.stream import Stream
from compiler.language.variables import distinct_names
from compiler.tracing.decoding import Decoder


@dataclass(frozen=True, eq=False)
class Reading:
    """How a value is read from lanes.

    parts: {lag: (width × lanes) csr}, the value as Σ matrix · lanes(t − lag).
    missing: (width × n) csr, what numbers without a lane would add: each is 0 or 1.
    after: how many blocks must have run before all its lanes are written; 0: the embedding.
    """

    parts: Mapping[int, sparse.csr_array]
    missing: sparse.csr_array
    after: int

    @property
    def lanes(self) -> np.ndarray:
        """The lanes that it reads, in rising order; the constant 1 among them."""
        read = [part.indices for part in self.parts.values()]
        return np.unique(np.concatenate(read)) if read else np.zeros(0, dtype=np.int64)

    @property
    def whole(self) -> bool:
        """Whether the lanes alone tell every number of the value."""
        return self.missing.shape[1] == 0

    def of(self, lanes: np.ndarray) -> np.ndarray:
        """The value, but for what is missing: (…, time, width) float64 from lanes (…, time, lanes)."""
        total = np.zeros((*lanes.shape[:-1], self.missing.shape[0]))
        for lag, matrix in self.parts.items():
            if lag >= lanes.shape[-2]:
                continue
            read = np.unique(matrix.indices)
            held = lanes[..., : lanes.shape[-2] - lag, read]
            flat = held.reshape(-1, len(read)).astype(np.float64)
            values = np.asarray((sparse.csr_array(matrix[:, read]) @ flat.T).T)
            total[..., lag:, :] += values.reshape(*held.shape[:-1], -1)
        return total


@dataclass(frozen=True, eq=False)
class Variable:
    """A stream of the circuit as written.

    name: one that no other variable of the circuit has; names: all that it goes by; called: what its author called it.
    stream: in the circuit as written; core: what it has become in the circuit that the blocks compute.
    reading: where its value stands; None where it stands on no lanes.
    """

    name: str
    names: tuple[str, ...]
    called: str | None
    stream: Stream
    core: Stream
    form: AffineForm = field(repr=False)
    reading: Reading | None

    @property
    def width(self) -> int:
        """How many numbers it has at a position."""
        return self.stream.width

    @property
    def constant(self) -> bool:
        """Whether it is the same at every position, whatever the tokens are."""
        return all(atom is ONE for atom, _ in self.form)

    @cached_property
    def atoms(self) -> tuple[Stream, ...]:
        """The atoms that it is made of, the constant 1 left out."""
        return tuple(dict.fromkeys(atom for atom, _ in self.form if atom is not ONE))


class Variables(Sequence[Variable]):
    """The variables of a compiled circuit, inputs before readers; `variables["stack"]` finds one by a name of its."""

    def __init__(self, compiled: Compiled):
        self.compiled = compiled
        self._all = tuple(_variables(compiled))
        self.of_stream = {variable.stream: variable for variable in self._all}
        self._by_name = {variable.name: variable for variable in self._all}
        for variable in self._all:
            for name in variable.names:
                self._by_name.setdefault(name, variable)

    @property
    def output(self) -> Variable:
        """What the circuit gives; its author may have called another stream so."""
        return self.of_stream[self.compiled.source.output]

    @property
    def one(self) -> int:
        """The lane of the constant 1."""
        return int(self.compiled.lanes.index[ONE][0])

    def decoder(self, variable: Variable, asked: str | None = None) -> Decoder:
        """What turns the numbers of a variable into letters, and back. asked: the name that it was asked by."""
        return Decoder(variable.stream, asked or variable.name, self.compiled.source.alphabet)

    def numbers(self, variable: Variable, lanes: np.ndarray) -> np.ndarray | None:
        """The numbers of a variable that stands on lanes: (…, time, width) float64 from lanes (…, time, lanes).

        None where one of them has no lane, and the others do not tell it.
        """
        reading = variable.reading
        assert reading is not None, "what is read stands on lanes"
        raw = reading.of(lanes)
        if reading.whole:
            return raw
        flat, missing = raw.reshape(-1, variable.width), reading.missing.toarray()[:, 0]
        whole = self.decoder(variable).completed(flat, missing)
        return None if whole is None else whole.reshape(raw.shape)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._all)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @overload
    def __getitem__(self, key: int | str) -> Variable: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Variable, ...]: ...
    def __getitem__(self, key: int | str | slice) -> Variable | tuple[Variable, ...]:
        if not isinstance(key, str):
            return self._all[key]
        if key not in self._by_name:
            raise NoVariable(self._none(key))
        return self._by_name[key]

    def _none(self, name: str) -> str:
        near = close_to(name, self._by_name)
        some = ", ".join(repr(v.name) for v in self._all if not v.constant)
        listed = some if len(some) <= 400 else some[:400] + " …"
        return f"the circuit has no variable {shown(name)}{near}{' Its' if near else '; its'} variables are {listed}"


class NoVariable(KeyError):
    """A name that no variable has; it says which names are near."""

    def __str__(self) -> str:
        return str(self.args[0])


def written_after(compiled: Compiled) -> np.ndarray:
    """For each lane how many blocks must have run before it is written; 0: the embedding writes it: (lanes,) int64."""
    result = np.zeros(compiled.lanes.count, dtype=np.int64)
    for number, block in enumerate(compiled.schedule.blocks, start=1):
        for atom in block:
            lanes = compiled.lanes.index[atom]
            result[lanes[lanes >= 0]] = number
    return result


def _variables(compiled: Compiled) -> Iterator[Variable]:
    after, source = written_after(compiled), compiled.source
    for stream, names in zip(source.streams, distinct_names(source.streams, source.output), strict=True):
        core = compiled.domains.became(stream)
        form, called = compiled.context.form(core), stream.as_written.variable
        yield Variable(names[0], names, called, stream, core, form, _reading(compiled, core, form, after))


def _reading(compiled: Compiled, core: Stream, form: AffineForm, after: np.ndarray) -> Reading | None:
    """Where the numbers of a form stand; None where none that it reads is on a lane, or too many are not."""
    parts: dict[int, list[tuple[sparse.csr_array, np.ndarray]]] = {}
    missing: list[sparse.csr_array] = []
    for (atom, lag), matrix in form.items():
        lanes = compiled.lanes.index.get(atom, np.full(atom.width, -1))
        parts.setdefault(lag, []).append((matrix, lanes))
        lost = np.unique(matrix.indices)
        lost = lost[lanes[lost] < 0]
        if len(lost) and not (lag == 0 and compiled.domains.of(atom).is_flag):
            return None
        missing += [sparse.csr_array(matrix[:, lost])] if len(lost) else []
    shape = (core.width, compiled.lanes.count)
    held = {lag: on_columns(found, shape) for lag, found in parts.items()}
    lost_parts = sparse.csr_array(sparse.hstack(missing)) if missing else sparse.csr_array((core.width, 0))
    read = [matrix.indices for matrix in held.values()]
    if lost_parts.shape[1] > 1 or (lost_parts.shape[1] and not sum(map(len, read))):
        return None
    last = max((int(after[i].max(initial=0)) for i in read), default=0)
    return Reading({lag: matrix for lag, matrix in held.items() if matrix.nnz}, lost_parts, last)
