"""What stands in the zoo: a circuit with a name, a sentence that says what it answers, and the answers themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from random import Random
from typing import TYPE_CHECKING, Any

from compiler.artifact.json_files import same_json
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.stream import Stream
from constructions.construction import Construction
from constructions.zoo.machine import Machine
from verify.tasks.task import IGNORED

if TYPE_CHECKING:
    from pathlib import Path

    from compiler.artifact.artifact import Artifact

Oracle = Callable[[list[str]], str | None]
Answered = tuple[list[str], list[str | None]]  # tokens, and behind each of them the right answer (None: nobody asks)
_LONGEST = 32  # tokens of a sequence that is drawn where an entry does not say how


@dataclass(frozen=True)
class Entry(ABC):
    """name: letters, digits and hyphens; says: what the model answers behind each token, in one sentence."""

    name: str
    says: str

    @abstractmethod
    def circuit(self) -> Circuit:
        """The circuit with its input language."""

    @abstractmethod
    def sequences(self, count: int, seed: int) -> list[Answered]:
        """`count` random sequences with their right answers, the same ones for the same count and seed."""

    @abstractmethod
    def write(self, directory: Path, arch: str = "") -> Artifact:
        """Compile and write the checkpoint, in the place of an earlier one; returns what was written. arch: the mixer
        [default: the circuit's own]; CompileError where it cannot be built of that.
        """

    @abstractmethod
    def is_of(self, manifest: Mapping[str, Any]) -> bool:
        """Whether the manifest of a checkpoint says that it is this circuit, built of any mixer."""


@dataclass(frozen=True)
class Own(Entry):
    """A circuit of the zoo's own.

    make: the scores and the input language; oracle: plain Python, from the tokens so far to the right next one;
    words: a sequence of the language that shows what the circuit does [default: a random walk of the language]; end:
    the token that ends a text.
    """

    make: Callable[[], tuple[Stream, InputLanguage]]
    oracle: Oracle
    words: Callable[[Random], Iterable[str]] | None = None
    end: str | None = None

    def circuit(self) -> Circuit:
        output, language = self.make()
        table = self.oracle.over(language) if isinstance(self.oracle, Machine) else None
        return Circuit(self.name, output, language, end=self.end, task=table or self._told())

    def _told(self) -> Oracle:
        """The oracle; one without a claim of its own under the name and with the sentence of the entry, which the
        checkpoint repeats.
        """
        if hasattr(self.oracle, "claim"):
            return self.oracle

        def answer(tokens: list[str]) -> str | None:
            return self.oracle(tokens)

        answer.__name__, answer.__doc__ = self.name, self.says
        return answer

    def sequences(self, count: int, seed: int) -> list[Answered]:
        language = self.circuit().token_language
        found = []
        for i in range(count):
            rng = Random(f"{self.name} {seed} {i}")
            word = _walk(language, rng) if self.words is None else list(self.words(rng))
            found.append((word, self.answers(word)))
        return found

    def answers(self, word: list[str]) -> list[str | None]:
        """What the oracle says behind each token."""
        if isinstance(self.oracle, Machine):
            return self.oracle.answers(word)
        return [self.oracle(word[: t + 1]) for t in range(len(word))]

    def write(self, directory: Path, arch: str = "") -> Artifact:
        from compiler.artifact.artifact import Artifact
        from compiler.artifact.save import save
        from compiler.driver import compile

        made = Artifact.of(compile(self.circuit(), arch or "mamba"))
        save(made, directory, overwrite=True)
        return made

    def is_of(self, manifest: Mapping[str, Any]) -> bool:
        return manifest.get("circuit") == self.name and manifest.get("construction") is None


@dataclass(frozen=True)
class FromPaper(Entry):
    """A construction of the registry, at a size; its answers are those of its tasks.

    make: the construction, built when it is first needed.
    """

    make: Callable[[], Construction]

    @cached_property
    def construction(self) -> Construction:
        return self.make()

    def circuit(self) -> Circuit:
        return self.construction.circuit()

    def sequences(self, count: int, seed: int) -> list[Answered]:
        tokens = self.circuit().token_alphabet.tokens
        tasks = self.construction.tasks()
        found: list[Answered] = []
        for i, task in enumerate(tasks):
            share = count // len(tasks) + (i < count % len(tasks))
            for batch in task.random(share, seed) if share else ():
                for ids, labels in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True):
                    found.append(([tokens[i] for i in ids], [None if i == IGNORED else tokens[i] for i in labels]))
        return found

    def write(self, directory: Path, arch: str = "") -> Artifact:
        from compiler.artifact.artifact import Artifact
        from constructions.checkpoints import artifact
        from constructions.checkpoints.built import build

        built = build(replace(self.construction, **({"arch": arch} if arch else {})))
        artifact.save(built, {}, directory, overwrite=True)  # the checker reads what is saved, and writes proof.json
        return Artifact(built.compiled, built.model)

    def is_of(self, manifest: Mapping[str, Any]) -> bool:
        asked, found = self.construction.params(), manifest.get("params")
        same = isinstance(found, dict) and all(same_json(found.get(k), v) for k, v in asked.items() if k != "arch")
        return same and manifest.get("construction") == self.construction.name


def _walk(language: InputLanguage, rng: Random) -> list[str]:
    """A random walk of the language, as long as it may be, up to 32 tokens; shorter where it runs dry."""
    for length in range(min(language.max_length, _LONGEST), 0, -1):
        try:
            (ids,) = language.sample(1, length, rng.getrandbits(62))
        except ValueError:  # no token may follow
            continue
        return [language.alphabet.tokens[i] for i in ids]
    raise ValueError(f"no sequence could be drawn from {language.description}")


@dataclass(frozen=True)
class Family:
    """Circuits of one kind. name: one word or two with a hyphen; title: what they have in common."""

    name: str
    title: str
    entries: Sequence[Entry]


def sizes(
    name: str,
    says: str,
    make: Callable[..., tuple[Stream, InputLanguage]],
    oracle: Callable[..., Oracle],
    *given: Any,
    words: Callable[[Random], Iterable[str]] | None = None,
) -> list[Own]:
    """A circuit at several sizes: each of `given` is the arguments of `make` and `oracle`, and fills name and says."""
    found = []
    for size in given:
        arguments = size if isinstance(size, tuple) else (size,)
        made = partial(make, *arguments)
        found.append(Own(name.format(*arguments), says.format(*arguments), made, oracle(*arguments), words))
    return found
