"""Interventions: variables set to values at some positions, in the circuit and in the lanes of the model.

In the *circuit*, a stream that is set has the given value at these positions, and its readers go on from there
(`interpret(fixed=…)`). In the *model* the same is done where the value is carried:

- the lanes of the variable, behind the block that writes them (`forward`);
- where the variable is a function of the token, the lanes of the other functions of the token that the circuit computes
  of it: the embedding holds their values, and nothing computes them again.

`carrier` says which lanes these are, or why a variable cannot be set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np
from scipy import sparse

from compiler.compiled import Compiled
from compiler.interpreter import interpret
from compiler.language.stream import Stream
from compiler.tracing.variables import Variable, Variables


class NotCarried(ValueError):
    """A variable that cannot be set in the model: one sentence says why, and which variables are near."""


@dataclass(frozen=True, eq=False)
class Carrier:
    """Where a variable is set.

    variable: its lanes take the value, behind `after` blocks; tables: further variables that the embedding holds, which
    are computed of it in the circuit alone.
    """

    variable: Variable
    tables: tuple[Variable, ...]

    @property
    def after(self) -> int:
        """How many blocks have run before its lanes are set; 0: the embedding alone."""
        assert self.variable.reading is not None
        return self.variable.reading.after


class Carriers:
    """The carriers of the variables of a circuit, each found once."""

    def __init__(self, variables: Variables, trial: Callable[[Carrier], str | None]):
        """trial: sets a variable in some runs; where the model is then not what the circuit is (None: nowhere)."""
        self.variables = variables
        self._tried = trial
        self._found: dict[Variable, Carrier | str] = {}

    @property
    def compiled(self) -> Compiled:
        return self.variables.compiled

    def of(self, variable: Variable, asked: str | None = None) -> Carrier:
        """Where the variable is set; NotCarried where it cannot be. asked: the name it was asked by, if another."""
        if variable not in self._found:
            self._found[variable] = self._find(variable)
        found = self._found[variable]
        if isinstance(found, str):
            raise NotCarried(
                f"{(asked or variable.name)!r} cannot be set in the model: {found}{self._nearest(variable)}"
            )
        return found

    def reason(self, variable: Variable) -> str | None:
        """Why it cannot be set; None where it can."""
        try:
            self.of(variable)
        except NotCarried as refusal:
            return str(refusal)
        return None

    def _find(self, variable: Variable) -> Carrier | str:
        source, reading = self.compiled.source, variable.reading
        if variable.stream is source.output and not source.graph.out_degree(variable.stream):
            return "it is the output, which the head forms and no lane holds"
        if variable.constant:
            return "it is the same at every position, so it is a part of the weights"
        if reading is None:
            return f"it is computed within a block and written to no lane{self._within(variable)}"
        if set(reading.parts) - {0}:
            return f"it is an earlier value, and the model looks {max(reading.parts)} positions back for it"
        carrier = Carrier(variable, self._tables(variable))
        return self._shared(variable) or self._bypassed(carrier) or self._tried(carrier) or carrier

    def _within(self, variable: Variable) -> str:
        readers = self.compiled.schedule.in_ports
        at = [a for a in variable.atoms if a in readers]
        return ", but in the ports of the blocks that read it" if at else ""

    # Who else reads its lanes ------------------------------------------------------------------------

    @cached_property
    def _by_lane(self) -> dict[int, list[Variable]]:
        found: dict[int, list[Variable]] = {}
        for variable in self.variables:
            lanes = () if variable.reading is None or variable.constant else variable.reading.lanes.tolist()
            for lane in lanes:
                found.setdefault(lane, []).append(variable)
        return found

    def _shared(self, variable: Variable) -> str | None:
        """Why setting its lanes would set another variable as well; None where it does not."""
        reading, graph = variable.reading, self.compiled.source.graph
        assert reading is not None
        for atom in variable.atoms:
            if atom in self.compiled.schedule.in_ports and atom.inputs:
                return "blocks that read it compute it again from what it is made of"
        others = {v for lane in reading.lanes.tolist() if lane != self.variables.one for v in self._by_lane[lane]} - {
            variable
        }
        if not others:
            return None
        after = nx.descendants(graph, variable.stream)
        for other in sorted(others, key=lambda v: self.variables.of_stream[v.stream].name):
            if other.stream in after or _passes_by(graph, other.stream, variable.stream, self.compiled.source.output):
                continue
            return f"its lanes hold {other.name!r} as well, which the circuit does not compute of it"
        return None

    def _bypassed(self, carrier: Carrier) -> str | None:
        """Why setting its lanes would not reach all that the circuit computes of it; None where nothing says so."""
        graph = self.compiled.core.graph
        atoms = {atom for v in (carrier.variable, *carrier.tables) for atom in v.atoms if atom in graph}
        reached = atoms.union(*(nx.descendants(graph, atom) for atom in atoms))
        after = nx.descendants(self.compiled.source.graph, carrier.variable.stream)
        for other in self.variables:
            if other.stream in after and other.atoms and not reached & set(other.atoms):
                return f"the model computes {other.name!r} of it without its lanes"
        return None

    def _tables(self, variable: Variable) -> tuple[Variable, ...]:
        """Variables behind this one that the embedding holds."""
        if variable.reading is None or variable.reading.after:
            return ()
        after = nx.descendants(self.compiled.source.graph, variable.stream)
        own = set(variable.reading.lanes.tolist())
        found = []
        for other in self.variables:
            reading = other.reading
            if other.stream in after and reading is not None and not other.constant and not reading.after:
                found += [other] if set(reading.parts) <= {0} and set(reading.lanes.tolist()) - own else []
        return tuple(found)

    def _nearest(self, variable: Variable) -> str:
        """Where to look instead: the nearest variables before and behind it that can be set."""
        graph = self.compiled.source.graph
        near = [self._first(variable, graph.predecessors), self._first(variable, graph.successors)]
        said = [f"{name!r} {where}" for name, where in zip(near, ("before it", "behind it"), strict=True) if name]
        return f"; the nearest that can be set: {' and '.join(said)}" if said else ""

    def _first(self, variable: Variable, step: Callable[[Stream], Iterable[Stream]]) -> str | None:
        seen, row = {variable.stream}, [variable.stream]
        while row:
            following = [s for stream in row for s in step(stream) if s not in seen]
            row = list(dict.fromkeys(following))
            for stream in row:
                other = self.variables.of_stream[stream]
                if other not in self._found:
                    self._found[other] = self._find(other)
                if isinstance(self._found[other], Carrier):
                    return other.name
            seen |= set(row)
        return None


def _passes_by(graph: nx.DiGraph, start: Stream, through: Stream, end: Stream) -> bool:
    """Whether every path from a stream to the end leads through another one."""
    if start is end:
        return False
    seen, stack = {start, through}, [start]
    while stack:
        for reader in graph.successors(stack.pop()):
            if reader is end:
                return False
            if reader not in seen:
                seen.add(reader)
                stack.append(reader)
    return True


# Values ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Setting:
    """where: (batch, time) mask; values: (batch, time, width) float64, which only count there."""

    where: np.ndarray
    values: np.ndarray


Intervention = Mapping[Variable, Setting]


def circuit_values(
    compiled: Compiled, tokens: np.ndarray, setting: Intervention, keep: Iterable[Stream], inside: bool
) -> dict[Stream, np.ndarray]:
    """What streams of the circuit as written hold under an intervention, each (batch, time, width) float64.

    inside: whether every value is one that its stream can have, so that float64 arrays may be exact.
    """
    dtype = compiled.domains.exact_dtype(compiled.source) if inside else object
    fixed = {v.stream: (s.where, s.values) for v, s in setting.items()}
    found = interpret(compiled.source, tokens, keep=list(keep), dtype=dtype, fixed=fixed)
    return {stream: values.astype(np.float64) for stream, values in found.items()}


@dataclass(frozen=True, eq=False)
class LaneSetting:
    """Numbers for some lanes: matrix (width × lanes) · lanes + missing · a flag = values (batch, time, width) where the
    mask holds. bounds: least, greatest and quantum of every lane.
    """

    name: str
    matrix: sparse.csr_array
    missing: sparse.csr_array
    bounds: tuple[np.ndarray, np.ndarray, np.ndarray]
    where: np.ndarray
    values: np.ndarray


def lane_bounds(compiled: Compiled) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Least, greatest and quantum (0: none, a real number) of what each lane can hold: (lanes,) each."""
    low, high, units = np.ones(compiled.lanes.count), np.ones(compiled.lanes.count), np.ones(compiled.lanes.count)
    for atom, lanes in compiled.lanes.index.items():
        domain, held = compiled.domains.of(atom), lanes >= 0
        for bounds, found in ((low, domain.low), (high, domain.high), (units, domain.units)):
            bounds[lanes[held]] = found[held]
    return low, high, units


def lane_settings(
    carriers: Carriers, tokens: np.ndarray, setting: Intervention, inside: bool
) -> dict[int, list[LaneSetting]]:
    """What is written to lanes, by the number of blocks that have run; NotCarried for what cannot be set."""
    return settings_of(carriers.compiled, {v: carriers.of(v) for v in setting}, tokens, setting, inside)


def settings_of(
    compiled: Compiled, carriers: Mapping[Variable, Carrier], tokens: np.ndarray, setting: Intervention, inside: bool
) -> dict[int, list[LaneSetting]]:
    """The same of carriers that are known."""
    tables: dict[Variable, np.ndarray] = {}
    for variable, carrier in carriers.items():
        for table in carrier.tables:
            if table not in setting:
                tables[table] = tables.get(table, False) | setting[variable].where
    values = circuit_values(compiled, tokens, setting, [v.stream for v in tables], inside) if tables else {}
    wanted = [(v, s.where, s.values) for v, s in setting.items()]
    wanted += [(v, where, values[v.stream]) for v, where in tables.items()]
    found: dict[int, list[LaneSetting]] = {}
    bounds = lane_bounds(compiled)
    for variable, where, numbers in wanted:
        reading = variable.reading
        assert reading is not None, "what has a carrier stands on lanes"
        part = LaneSetting(variable.name, reading.parts[0], reading.missing, bounds, where, numbers)
        found.setdefault(reading.after, []).append(part)
    return found
