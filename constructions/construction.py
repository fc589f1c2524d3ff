"""What a construction is: the parameters of a theorem, its circuit, its bound and its task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from compiler.artifact.free_memory import free_bytes, too_large
from compiler.artifact.json_files import shown
from compiler.language.arguments import counted
from compiler.language.circuit import Circuit
from compiler.machines import machine_names
from compiler.targets.target import KERNEL_COLUMNS
from constructions.papers import MIXERS, after, beyond_the_paper
from verify.arguments import at_least
from verify.certificates.certificate import Certificate
from verify.tasks.task import Task

if TYPE_CHECKING:
    from compiler.artifact.model import Stack
    from compiler.compiled import Compiled
    from verify.obstructions import Capacity, Obstruction
    from verify.tasks.numbers import NumberTask

LARGEST_PARAMETER = 1 << 53  # of any number that is no size
LARGEST_ALPHABET = 1 << 20


def parameter(help: str, most: int = LARGEST_PARAMETER, option: str | None = None, **options: Any):
    """A dataclass field with the help text that the command line shows.

    most: the largest number that is tried; option: what the command line calls it, where not by its own name.
    """
    return field(metadata={"help": help, "most": most, "option": option}, **options)


@dataclass(frozen=True)
class CircuitFamily(ABC):
    """A parametrised circuit from a theorem, over tokens or over numbers. Subclasses are frozen dataclasses whose
    fields are the parameters.

    name:    what the command line calls it.
    theorem: the statement it builds, whatever its parameters are; `statement` is that of one circuit.
    mixers:  targets that the statement is about; () where it names none.
    group:   the command whose sub-command it is, such as "dp" in `construct dp lis`; "" for `construct NAME`.
    unsaid:  parameters that a manifest leaves out where they have this value, as checkpoints do that are older.
    """

    name: ClassVar[str]
    theorem: ClassVar[str]
    mixers: ClassVar[tuple[str, ...]] = ()
    group: ClassVar[str] = ""
    unsaid: ClassVar[Mapping[str, Any]] = {}
    registered: ClassVar[bool] = True  # whether name and parameters are enough to build it again

    seed: int = parameter("seed of everything that is drawn", default=0, kw_only=True)

    @property
    @abstractmethod
    def dtype(self) -> str:
        """The arithmetic that the promise is made for."""

    @property
    @abstractmethod
    def target(self) -> str:
        """The compiler's target: "mamba", "mamba2" or "s4d"."""

    @abstractmethod
    def circuit(self) -> Circuit:
        """The circuit, over the inputs that the guarantee is for."""

    def check_sizes(self) -> None:
        """ValueError, before any work, for sizes that no machine builds."""
        for entry in fields(self):
            value, most = getattr(self, entry.name), entry.metadata.get("most")
            if type(value) is int and most is not None and abs(value) > most:
                raise ValueError(f"{entry.name} = {shown(value)} is too large; the largest that is tried is {most}")

    def check_effect(self) -> None:
        """ValueError for what the command line asks for and nothing is made of. Manifests may hold such a parameter."""
        return

    @abstractmethod
    def tasks(self) -> Sequence[Task] | Sequence[NumberTask]:
        """Independent oracles: what the circuit must do on the inputs of its promise."""

    def longest_sequence(self) -> int:
        """Tokens of the longest sequence that its tasks have: the promise must cover so many."""
        return max(task.length for task in self.tasks())

    def check_lengths(self, promised: int) -> None:
        """ValueError where the tasks have longer sequences than the promise covers."""
        longest = self.longest_sequence()
        own = getattr(self, "length", None)
        given = f"with length = {own} " if type(own) is int else ""
        at_least("max_length", promised, longest, f"{given}{self.title()} is run on sequences of {longest} tokens")

    def stated_bound(self) -> tuple[dict[str, int], str]:
        """The sizes that a paper states for its statement, by name, and where they stand: the theorem's numbers, or its
        order with constants of ours, which the source says. ({}, "") where no paper states any.
        """
        return {}, ""

    def bounded(self) -> bool:
        """Whether `stated_bound` is about this very circuit: not where it goes beyond the paper."""
        return not self.beyond()

    def bound(self) -> dict[str, int]:
        """What a paper states of this very circuit; {} where none does."""
        return self.stated_bound()[0] if self.bounded() else {}

    def by_hand(self) -> dict[str, int]:
        """Sizes of the network of fnn+ssm, in the letters of its class (`PaperSizes`), by explicit formulas; {} where
        there are none."""
        return {}

    def obstructions(self, has: Capacity) -> list[Obstruction]:
        """What any exact model needs, or any of its kind, beside what a built one has (`verify.obstructions`)."""
        return []

    def nearest(self) -> str:
        """The statement that this very circuit builds, or is built after: of those of its family, if there are more."""
        return self.theorem

    def beyond(self) -> str:
        """What of this very circuit its statement does not have, in a few words; "" where it has all of it."""
        return MIXERS[self.target] if self.mixers and self.target not in self.mixers else ""

    def otherwise(self) -> str:
        """How this circuit does what its statement has in another way, in a few words; "" where it does not."""
        return ""

    def statement(self) -> str:
        """What this very circuit is: the statement that it builds, or the one after which it goes beyond the paper."""
        if self.target == "fnn+ssm":
            return self.on_network()
        return self._built_with(self.otherwise())

    def _built_with(self, other: str) -> str:
        """The statement of a circuit that does what it has in this other way."""
        nearest, beyond = self.nearest(), self.beyond()
        built = f"{after(nearest)}, {other}" if other else nearest
        return beyond_the_paper(built, beyond) if beyond else built

    def on_network(self) -> str:
        """The statement after which it is built on fnn+ssm, where that is another one than of the mixers."""
        return f"{after(self.theorem)}, with sizes of ours"

    def former_statements(self) -> tuple[str, ...]:
        """What earlier versions wrote for `statement`: its theorem or the family's, without how it is done here."""
        beyond, theorems = self.beyond(), (self.theorem, self.nearest())
        return (*theorems, *(beyond_the_paper(theorem, beyond) for theorem in theorems)) if beyond else theorems

    def recorded_statement(self, found: str | None) -> str:
        """What a record may have as its statement: what an earlier version wrote there, or `statement`."""
        return found if found in self.former_statements() else self.statement()

    def bound_source(self) -> str:
        """Where `bound` stands, and whose its constants are; "" where there is none."""
        return self.stated_bound()[1] if self.bounded() else ""

    def title(self) -> str:
        """What reports and pictures call it."""
        return self.name

    def promise(self) -> str:
        """Which answers are right: "all" on the input language, "random" (most, at a measured rate), or "untold"."""
        return "all"

    def information_bits(self) -> float:
        """How many bits any state must hold to answer every promised input (`verify.task_states` says what is counted);
        0 where no bound is stated.
        """
        return 0.0

    def unstated_answers(self) -> int:
        """How many answers its author gave beside those of the stated task, of which a proof of the task is not."""
        return 0

    def expected_failure(self) -> float:
        """The rate of wrong answers to expect of a "random" promise, by the theory; 0 for "all"."""
        return 0.0

    def drawn_codes(self) -> dict[str, Any] | None:
        """Of random codes: how they were drawn, what was measured of them, and how often these fail; else None."""
        return None

    def asks(self) -> dict[str, Any] | None:
        """The task as the checker knows it (`checker/tasks/task.py`): its name and parameters. The checker finds the
        letters by their names. None where it has no proof of answers."""
        return None

    def asks_where(self) -> str:
        """At which questions there is a right answer, in words that follow "every answer is right"; "" for all of them.

        Over tokens it is said of `asks`. Numbers have no input language, so all else that a task asks of its inputs
        stands here: reports, cards and manifests say it wherever they say which answers are right.
        """
        return ""

    def asked_at(self, tokens: np.ndarray) -> np.ndarray:
        """The same of a sequence of token ids (length,): whether it is so at each position, bool (length,).

        A construction that promises most answers says it, where `asks_where` does: a wrong answer there is against the
        proof, and elsewhere it counts against the rate.
        """
        return np.ones(len(tokens), dtype=bool)

    def certificate(self, stack: Stack, compiled: Compiled) -> Certificate | None:
        """A proof about a module for which the checker does not speak: the bare one of a mixer that has no checkpoint,
        or a model over numbers; None where there is no such proof.

        Raises Refused or Violated where the proof does not go through.
        """
        return None

    def contrasts(self) -> Sequence[Construction]:
        """Other constructions whose circuits are run on the same data, to show what goes wrong without this one."""
        return ()

    def columns(self) -> int | None:
        """How many columns the state of a block may have; None: what the CUDA kernels take."""
        return None

    def groups(self) -> int:
        """How many groups of B and C the mixers have."""
        return 1

    def among_others(self) -> Circuit | None:
        """The circuit where tokens that are none of its letters may stand between them, as in a host's text or beside
        another circuit; None: its own is as good there.
        """
        return None

    def compiled(self, circuit: Circuit | None = None) -> Compiled:
        """The circuit, by default its own, compiled as its parameters say."""
        from compiler.driver import compile, compiled_or_told

        own = (self.target, self.dtype, self.columns(), self.groups())
        if self.target in machine_names():
            return compile(circuit or self.circuit(), *own)
        return compiled_or_told(circuit or self.circuit(), *own, self.tried(), self.fits)

    def tried(self) -> Callable[[int], object] | None:
        """What makes the same for another length, and raises ValueError where that is refused; None: its circuit is."""
        return None

    def fits(self, length: int) -> str:
        """How a refusal says that the promise of a shorter length would be kept."""
        from compiler.shorter import fits

        return fits(length)

    def params(self) -> dict[str, Any]:
        """The parameters by name, as the manifest records them."""
        said = asdict(self).items()
        return {name: value for name, value in said if name not in self.unsaid or self.unsaid[name] != value}


@dataclass(frozen=True)
class Construction(CircuitFamily):
    """A circuit over tokens, in an arithmetic and up to a length of one's choice."""

    dtype: Literal["float32", "bfloat16", "float16"] = parameter(
        "arithmetic that the promise is made for", default="float32", kw_only=True
    )
    max_length: int = parameter("longest sequence that the promise covers", default=65536, kw_only=True)

    @abstractmethod
    def letters(self) -> int:
        """How many tokens the circuit's alphabet has, by formula: known before anything is built."""

    @abstractmethod
    def tasks(self) -> Sequence[Task]:
        """Independent oracles: what the circuit must do on the inputs of its language."""

    def check_sizes(self) -> None:
        super().check_sizes()
        default = next(entry.default for entry in fields(self) if entry.name == "max_length")
        said = "0 stands for the longest that is needed" if default == 0 else "a sequence has a token"
        if self.max_length is not None:  # which may stand for every length
            at_least("max_length", self.max_length, 0 if default == 0 else 1, said)
        if self.letters() < 1:
            raise ValueError(f"{self.name} would have no token at all, and at least one is needed")
        if self.letters() > LARGEST_ALPHABET:
            raise ValueError(
                f"{self.name} would have {shown(self.letters())} tokens, and at most {LARGEST_ALPHABET} work"
            )
        beyond = too_large(self.least_parameters(), free_bytes(), "would have at least")
        if beyond is not None:
            raise ValueError(beyond)

    def tried(self) -> Callable[[int], object]:
        """Another length may take another circuit, and its language model may be refused where its blocks are not."""
        from compiler.artifact.artifact import packaged, savable
        from compiler.driver import compiled_once
        from compiler.shorter import at_length

        def made(length: int) -> object:
            other = self._shorter(length)
            circuit = other.circuit()
            if circuit.max_length != length:  # of a circuit that was read from a file
                circuit = at_length(circuit, length)
            other.check_lengths(length)  # with a promise shorter than its tasks a construction is refused
            compiled = compiled_once(circuit, other.target, other.dtype, other.columns(), other.groups())
            return packaged(savable(compiled)) if compiled.context.target.family else compiled

        return made

    def fits(self, length: int) -> str:
        shorter = self._shorter(length)
        also = "" if shorter == replace(self, max_length=length) else f" with a length of {length}"
        return f"{super().fits(length)}{also}"

    def _shorter(self, length: int) -> Self:
        """The same with another promise, whose tasks have sequences no longer than that where it says how long."""
        own = getattr(self, "length", 0)
        tasks = {"length": length} if type(own) is int and own > length else {}
        return replace(self, max_length=length, **tasks)

    def least_parameters(self) -> int:
        """How many parameters the language model has at least, where the sizes alone tell; 0 where they do not."""
        return 0


@dataclass(frozen=True)
class NumericConstruction(CircuitFamily):
    """A circuit over numbers on real Mamba blocks, in float32: exact on integers, within a proved bound elsewhere."""

    dtype: ClassVar[str] = "float32"  # type: ignore[misc]
    target: ClassVar[str] = "mamba"  # type: ignore[misc]

    def fits(self, length: int) -> str:
        """Its commands have no max_length: what may be long is said by other parameters."""
        return f"sequences of at most {length} would fit"

    @abstractmethod
    def tasks(self) -> Sequence[NumberTask]:
        """Independent oracles: what the outputs must be."""


@dataclass(frozen=True)
class WithMemory(CircuitFamily):
    """Whose keyed memories may be kept in two digits; beside a base that has the other parameters."""

    unsaid: ClassVar[Mapping[str, Any]] = {"max_d_state": 0, "n_groups": 1}

    max_d_state: int = parameter(
        "columns that the state of a block may have (0: what the CUDA kernels take)", default=0, kw_only=True
    )

    n_groups: int = parameter(
        "of Mamba-2: groups of B and C, each with its share of the columns; a power of two", default=1, kw_only=True
    )

    def columns(self) -> int | None:
        return self.max_d_state or None

    def groups(self) -> int:
        return self.n_groups

    def statement(self) -> str:
        """With what it was told of its columns: a theorem has all of them in one state."""
        said = ", ".join(filter(None, (self.few_columns_said(), self.groups_said())))
        return f"{after(super().statement())}, {said}" if said else super().statement()

    def few_columns_said(self) -> str:
        """That a state may have few columns; "" where that is not asked, or told in `otherwise`."""
        return f"with at most {counted(self.max_d_state, 'column')} in a state" if self.max_d_state else ""

    def groups_said(self) -> str:
        """In how many groups the columns are; "" for one, or where that is told in `otherwise`."""
        return f"with columns in {self.n_groups} groups" if self.n_groups > 1 else ""

    def former_statements(self) -> tuple[str, ...]:
        """Earlier versions told nothing of columns."""
        return (*super().former_statements(), super().statement())

    def bounded(self) -> bool:
        """A theorem has all columns in one state: not a block before for a second digit, and no groups of columns."""
        most = self.columns() or KERNEL_COLUMNS
        return super().bounded() and self.groups() == 1 and self.stated_bound()[0].get("d_state", 0) <= most

    def check_sizes(self) -> None:
        super().check_sizes()
        if self.max_d_state < 0:
            raise ValueError(f"max_d_state = {self.max_d_state} is no number of columns; the smallest is 1")
