"""Patches: which variables are set to what, kept until there is an input to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from compiler.language.arguments import integer, listed, shown
from compiler.language.types import Bool, OneHot
from compiler.tracing.intervention import Setting
from compiler.tracing.trace import Trace
from compiler.tracing.truth import Text, Truth
from compiler.tracing.variables import Variable

Given: TypeAlias = "Mapping[int, Any] | Sequence[int]"


@dataclass(frozen=True, eq=False)
class Change:
    """Of one variable: at which positions (None: all) it has which numbers. at: for the message; source: whose run."""

    variable: Variable
    positions: tuple[int, ...] | None
    numbers: tuple[np.ndarray, ...]
    said: str


@dataclass(frozen=True, eq=False)
class Patch:
    """Changes of variables, the later ones over the earlier. `trace(text)` runs the model and the circuit with them."""

    truth: Truth
    changes: tuple[Change, ...] = ()

    def also(self, values: Mapping[str, Given], source: Text | None = None) -> Patch:
        """The same and these, as `TracedModel.patch` takes them."""
        found = []
        run = None if source is None else self.truth.trace(self.truth.ids(source), {})
        for name, given in values.items():
            variable = self._settable(name)
            found.append(self._set(variable, name, given) if run is None else self._taken(variable, given, run))
        return replace(self, changes=(*self.changes, *found))

    patch = also

    def ablated(
        self, names: Sequence[str], mean_of: Sequence[Text] = (), positions: Sequence[int] | None = None
    ) -> Patch:
        """The same and these, as `TracedModel.ablate` takes them."""
        at = None if positions is None else tuple(integer(p, "a position") for p in positions)
        found = []
        for name in names:
            variable = self._settable(name)
            numbers, said = np.zeros(variable.width), "ablated to zeros"
            if mean_of:
                numbers, said = self._mean(variable, mean_of), "ablated to a mean"
            found.append(Change(variable, at, (numbers,), said))
        return replace(self, changes=(*self.changes, *found))

    def trace(self, text: Text) -> Trace:
        """The model, and the circuit, on an input with the variables set. IndexError for a position beyond it."""
        ids = self.truth.ids(text)
        setting, outside = self.setting(len(ids))
        return self.truth.trace(ids, setting, outside)

    def setting(self, length: int) -> tuple[dict[Variable, Setting], list[str]]:
        """The changes of an input of so many tokens, and in what they are outside the promise, a sentence each."""
        found: dict[Variable, Setting] = {}
        outside: list[str] = []
        for change in self.changes:
            variable = change.variable
            at = range(length) if change.positions is None else [self._at(p, length, change) for p in change.positions]
            if not at:
                continue  # set nowhere: neither a setting nor outside of anything
            empty = Setting(np.zeros((1, length), dtype=bool), np.zeros((1, length, variable.width)))
            setting = found.setdefault(variable, empty)
            numbers = change.numbers * len(at) if len(change.numbers) == 1 else change.numbers
            for position, values in zip(at, numbers, strict=True):
                setting.where[0, position] = True
                setting.values[0, position] = values
            outside += [s for s in (self._outside(variable, values) for values in change.numbers) if s]
        return found, list(dict.fromkeys(outside))

    @staticmethod
    def _at(position: int, length: int, change: Change) -> int:
        if not -length <= position < length:
            raise IndexError(
                f"{change.variable.name!r} is set at position {position}, and the input has {length} tokens, counted "
                "from 0"
            )
        return position % length

    def _settable(self, name: str) -> Variable:
        variable = self.truth.variables[name]
        self.truth.carriers.of(variable, name)
        return variable

    def _set(self, variable: Variable, name: str, given: Given) -> Change:
        if not isinstance(given, Mapping):
            raise TypeError(
                f"{name!r} is set to {shown(given)}, and {{position: value}} is needed; a list of positions "
                "takes the values of another run, by source=…"
            )
        decoder = self.truth.decoder(name)
        positions = tuple(integer(p, f"a position of {name!r}") for p in given)
        numbers = tuple(self._held(name, decoder.encode(value)) for value in given.values())
        return Change(variable, positions, numbers, "set")

    def _taken(self, variable: Variable, given: Given, run: Trace) -> Change:
        if isinstance(given, Mapping):
            pairs = [(integer(a, "a position"), integer(b, "a position of the source")) for a, b in given.items()]
        else:
            at = listed(given, f"the positions of {variable.name!r}", "a list of positions")
            pairs = [(integer(p, "a position"), integer(p, "a position")) for p in at]
        raw = run.raw(variable)
        for _, there in pairs:
            if not -len(raw) <= there < len(raw):
                raise IndexError(f"the source has {len(raw)} tokens, and no position {there} of {variable.name!r}")
        return Change(variable, tuple(here for here, _ in pairs), tuple(raw[there] for _, there in pairs), "taken")

    def _mean(self, variable: Variable, texts: Sequence[Text]) -> np.ndarray:
        runs = [self.truth.trace(self.truth.ids(text), {}).raw(variable) for text in texts]
        mean = np.concatenate(runs).mean(axis=0)
        import torch  # only to round as the model's format does

        format = self.truth.compiled.context.format
        return torch.from_numpy(mean).to(format.torch_dtype).double().numpy()

    def _held(self, name: str, numbers: np.ndarray) -> np.ndarray:
        """The numbers; ValueError where no lane holds one of them."""
        format = self.truth.compiled.context.format
        wrong = ~format.holds(numbers)
        if wrong.any():
            raise ValueError(
                f"{name!r} is set to {numbers[wrong][0]:.12g}, which no lane of {format.name} holds exactly"
            )
        return numbers

    def _outside(self, variable: Variable, numbers: np.ndarray) -> str | None:
        """In what a value is none that the circuit can give the variable."""
        domain, kind = self.truth.compiled.domains.of(variable.stream), variable.stream.type
        wrong = (numbers < domain.low) | (numbers > domain.high)
        if wrong.any():
            i = int(np.flatnonzero(wrong)[0])
            low, high = float(domain.low[i]) + 0.0, float(domain.high[i]) + 0.0  # no −0
            return f"{variable.name!r} is set to {numbers[i]:g}, and in the circuit it lies in {low:g} … {high:g}"
        units = np.where(np.isfinite(domain.units) & (domain.units > 0), domain.units, 1.0)
        if ((domain.units > 0) & (numbers % units != 0)).any():
            return f"{variable.name!r} is set to numbers between those that the circuit can give it"
        if isinstance(kind, OneHot) and numbers.sum() > 1:
            return f"{variable.name!r} is set to several alternatives at once"
        if isinstance(kind, (Bool, OneHot)) and not np.isin(numbers, (0, 1)).all():
            return f"{variable.name!r} is set to a number that is neither 0 nor 1"
        return None
