"""A circuit of one's own, as its checkpoint holds it: circuit.json and the promise, in the place of a construction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

from compiler.artifact.answers import Answers, read_answers
from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import ANSWERS, CIRCUIT, MANIFEST
from compiler.artifact.json_files import read_json
from compiler.artifact.manifest import Manifest
from compiler.export.directory import RECORD
from compiler.export.record import ExportRecord
from compiler.language.circuit import Circuit
from compiler.language.data import DataError, from_data
from compiler.tracing.saved_variables import with_variables
from constructions.command.display import OWN
from constructions.construction import CircuitFamily, Construction, parameter
from verify.checker.formats import Rejected
from verify.checker.tasks.names import Stated
from verify.tasks.answers import AuthorsAnswers
from verify.tasks.numbers import AnyNumbers
from verify.tasks.recorded import promised
from verify.tasks.stated import StatedAnswers, fitting_rule
from verify.tasks.task import Task
from verify.tasks.walks import Walks


def read_circuit(directory: Path, manifest: Manifest | ExportRecord, weights: int) -> SavedCircuit | SavedNumbers:
    """The circuit of a checkpoint with so many bytes of weights; CheckpointError, one sentence, where it is none."""
    try:
        circuit = from_data(read_json(directory / CIRCUIT), weights)
        circuit = replace(circuit, end=manifest.promise.stop)
        if circuit.language is not None and manifest.asked:
            circuit = replace(circuit, language=replace(circuit.language, asked=manifest.asked))
    except (DataError, ValueError, TypeError) as reason:
        raise CheckpointError(f"{directory / CIRCUIT} holds no circuit of ours: {str(reason).rstrip('.')}.") from reason
    circuit = with_variables(circuit, directory)
    asked = {"limit": manifest.max_d_state, "told_groups": manifest.n_groups}
    if circuit.alphabet is None:
        return SavedNumbers(circuit, manifest.arch, manifest.dtype, **asked)
    if circuit.language is None:
        raise CheckpointError(f"{directory / CIRCUIT} has no input language, and a language model needs one.")
    if isinstance(manifest, Manifest):  # an export has neither
        letters, most = circuit.alphabet.tokens, circuit.language.max_length
        answers = None if manifest.answers is None else read_answers(directory / ANSWERS, letters, most)
        asked |= {"stated": manifest.task, "answers": answers}
    else:
        asked |= {"stated_in": RECORD}
    return SavedCircuit(circuit, manifest.arch, dtype=manifest.dtype, **asked)


@dataclass(frozen=True)
class OneOwn(CircuitFamily):
    """A circuit of one's own: its own reference, with no theorem, bound or parameters beside it."""

    name: ClassVar[str] = "circuit"
    theorem: ClassVar[str] = OWN
    registered: ClassVar[bool] = False

    source: Circuit = parameter("the circuit")
    arch: str = parameter("the compiler's target")
    limit: int | None = parameter(
        "columns that the state of a block may have, where its author said so", default=None, kw_only=True
    )

    told_groups: int = parameter("groups of B and C", default=1, kw_only=True)
    stated_in: str = parameter("the file that states its input language", default=MANIFEST, kw_only=True)

    @property
    def target(self) -> str:
        return self.arch

    def columns(self) -> int | None:
        return self.limit

    def groups(self) -> int:
        return self.told_groups

    def circuit(self) -> Circuit:
        return self.source

    def title(self) -> str:
        """The circuit's own name."""
        return self.source.name or self.name

    def promise(self) -> str:
        """The circuit is its own reference: nobody tells what it should answer."""
        return "untold"

    def bound(self) -> dict[str, int]:
        """No theorem, no bound."""
        return {}

    def params(self) -> dict[str, Any]:
        """None beyond the circuit itself."""
        return {}


@dataclass(frozen=True)
class SavedCircuit(OneOwn, Construction):
    """Its tasks run the short strings of its input language and random walks, against the interpreter, and ask the task
    that it states, which is its author's word and nothing else; and the questions that its author's function was asked,
    where there is one.
    """

    stated: dict[str, Any] | None = parameter("the task that its manifest states for the checker", default=None)
    answers: Answers | None = parameter("what its author says that it should answer", default=None)

    def letters(self) -> int:
        return self.source.alphabet.size

    def promise(self) -> str:
        return super().promise() if self.answers is None and self.stated is None else "all"

    @cached_property
    def _read(self) -> tuple[Stated | None, str]:
        """(`rule`, `refused`)."""
        if self.stated is None:
            return None, ""
        try:
            return fitting_rule(self.stated, self.source.language, self.source.end), ""
        except Rejected as reason:
            return None, str(reason)

    @property
    def rule(self) -> Stated | None:
        """The stated task as a program; None where none is stated, or one that is refused."""
        return self._read[0]

    @property
    def refused(self) -> str:
        """Why the stated task is none of this circuit's; "" where it is one, or none is stated."""
        return self._read[1]

    def asks(self) -> dict[str, Any] | None:
        return self.stated

    def tasks(self) -> list[Task]:
        language, told = self.source.language, [] if self._told is None else [self._told]
        return [Walks(language) if self.rule is None else StatedAnswers(language, self.rule), *told]

    @cached_property
    def _told(self) -> AuthorsAnswers | None:
        if self.answers is None:
            return None
        within = partial(promised, self.source.language)
        return AuthorsAnswers(self.answers, self.source.alphabet.tokens, self.rule, within)

    def unstated_answers(self) -> int:
        return 0 if self._told is None else self._told.beyond


@dataclass(frozen=True)
class SavedNumbers(OneOwn):
    """A circuit over numbers: it is run on numbers of every size that its inputs may have, against the interpreter."""

    arithmetic: str = parameter("the arithmetic of the promise")

    @property
    def dtype(self) -> str:
        return self.arithmetic

    def tasks(self) -> list[AnyNumbers]:
        return [AnyNumbers(self.source)]
