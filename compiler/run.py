"""A circuit on its way through the passes: what runs them in order, tries the strategies, and notes what they did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from compiler.context import Context
from compiler.errors import CompileError
from compiler.language.circuit import Circuit
from compiler.pipeline import PASSES, STRATEGIES, Stage, Strategy, measured
from compiler.steps import AS_WRITTEN, Step

_Form = TypeVar("_Form")


class Run:
    """One circuit on its way.

    steps: what ran, what it changed, and what was tried and refused; attempt: the strategy or variant in hand.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.attempt = AS_WRITTEN

    def through(self, stage: Stage, form: Any, context: Context) -> tuple[Any, Context]:
        """A form behind all passes of a stage."""
        for entry in PASSES:
            if entry.stage == stage:
                try:
                    after, context = entry.run(form, context)
                except CompileError as refusal:
                    self.note(entry.name, str(refusal), refused=True)
                    raise
                self.note(entry.name, _change(form, after))
                form = after
        return form, context

    def note(self, name: str, said: str, refused: bool = False) -> None:
        """Add a step."""
        self.steps.append(Step(self.attempt, name, said, refused))

    def first(
        self,
        stage: Stage,
        circuit: Circuit,
        context: Context,
        then: Callable[[Circuit, Context], tuple[_Form, Context]] | None = None,
    ) -> tuple[_Form, Context]:
        """What the passes make of the circuit as it is, or else as each strategy in turn makes it of what was refused.

        then: instead of the passes of the stage alone. CompileError with the reasons of the last that was refused.
        """
        run = then or (lambda circuit, context: self.through(stage, circuit, context))
        refusal: CompileError | None = None
        for strategy in (None, *(s for s in STRATEGIES if s.answers == stage)):
            try:
                if strategy is not None and refusal is not None:
                    found = self._tried(strategy, circuit, context, refusal)
                    if found is None:
                        continue
                    circuit, context = found
                return run(circuit, context)
            except CompileError as reason:
                refusal = reason
        assert refusal is not None, "what is not refused has been returned"
        raise refusal  # here, and not where it was caught: the refusals before it are no causes of it

    def _tried(
        self, strategy: Strategy, circuit: Circuit, context: Context, refusal: CompileError
    ) -> tuple[Circuit, Context] | None:
        """What a strategy makes of a refused circuit; None where that is the same again."""
        self.attempt = strategy.name
        found, known = strategy.run(circuit, context, refusal)
        self.note(strategy.name, _change(circuit, found))
        return None if found is circuit and known is context else (found, known)


def _change(before: Any, after: Any) -> str:
    """What a pass made of a form, in words."""
    if after is before:
        return "changes nothing"
    if type(after) is not type(before):
        return measured(after)
    return f"{measured(before)} → {measured(after)}"
