"""answers.json: what a circuit of one's own should answer, as its author says, on sequences of its input language.

A task is a Python function. It is asked when the checkpoint is written, and only its answers are kept: nobody who
verifies a checkpoint runs a program that came with it. Where the function also has a `claim`, the manifest states that
as the circuit's task, and the checker proves it or says where it stops.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compiler.artifact.errors import CheckpointError
from compiler.artifact.json_files import read_json, shown
from compiler.artifact.schema import parse
from compiler.compiled import Compiled
from compiler.language.alphabet import Alphabet
from compiler.language.arguments import close_to
from compiler.language.input_language import InputLanguage
from compiler.language.markdown import one_line
from compiler.own_file import module_of

Task = Callable[[list[str]], str | None]
"""From the tokens so far to the token that must score highest behind them; None where nobody asks."""

VERSION = 1
LONGEST = 64  # tokens of a sequence that is asked
_SHORT = 512  # sequences of one length that are all asked
_WALKS = 128  # longer ones, drawn at random
MOST_QUESTIONS = 1 << 18


@dataclass(frozen=True)
class Asked:
    """A sequence and, for each of its tokens, the answer that is right behind it; null where nobody asks."""

    tokens: list[str]
    answers: list[str | None]


@dataclass(frozen=True)
class Answers:
    """The content of answers.json. function: the name of the function; says: the first line of its docstring."""

    version: int
    function: str
    says: str
    sequences: list[Asked]

    @property
    def questions(self) -> int:
        return sum(answer is not None for asked in self.sequences for answer in asked.answers)


def task_function(task: object) -> Task:
    """The function that a task means: itself, or that of "FILE.py:function".

    TypeError or ValueError where it is none.
    """
    if callable(task):
        return task
    if not isinstance(task, (str, Path)):
        raise TypeError(f'the task is {shown(task)}, and a function of tokens or "FILE.py:function" is needed')
    file, colon, name = str(task).rpartition(":")
    if not colon or not file.endswith(".py"):
        raise ValueError(f'the task is {shown(str(task))}, and it must be written "FILE.py:function"')
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"the task's file {file} does not exist")
    module = module_of(path)
    found = getattr(module, name, None)
    if not callable(found):
        raise ValueError(f"{file} has no function {name!r}{close_to(name, vars(module))}")
    return found


def record(compiled: Compiled, task: Task) -> Answers:
    """Ask the task about short sequences of the language and random ones, and hold the circuit to its answers.

    CheckpointError where the circuit answers otherwise, for an answer that is no token, and where nothing is ever
    asked. An error of the task itself is raised as it is, with the sequence as a note.
    """
    alphabet = compiled.source.alphabet
    if alphabet is None:
        raise CheckpointError(f"the circuit {compiled.source.name!r} reads numbers, and a task is about tokens.")
    found: list[Asked] = []
    letters = frozenset(alphabet.tokens)
    for rows in _sequences(compiled.source.token_language):
        scores = compiled.interpret(rows)
        for row, said in zip(rows.tolist(), scores, strict=True):
            names = [alphabet.tokens[i] for i in row]
            answers = [_asked(task, names[: t + 1], letters) for t in range(len(names))]
            _compare(names, answers, said, alphabet.tokens)
            found.append(Asked(names, answers))
    made = Answers(VERSION, _name(task), _says(task), found)
    if not made.questions:
        raise CheckpointError(
            f"the task {made.function} answers None on all {len(found):,} sequences that it was asked"
            f"{strange_tokens(task, alphabet)}."
        )
    return made


def strange_tokens(task: object, alphabet: Alphabet) -> str:
    """What a task of a general form reads that is no token of the circuit, in words that follow; "" without such."""
    odd = [token for token in getattr(task, "tokens", ()) if token not in alphabet.tokens]
    return f"; it reads {odd[0]!r}, which is no token of the circuit's alphabet" if odd else ""


def _sequences(language: InputLanguage) -> Iterator[np.ndarray]:
    """(sequences, length) ids: all short ones while a length has at most 512, then random walks of several lengths.

    A walk's prefixes are asked as well, so where every string of a length is there, the shorter ones add nothing but
    the strings that nothing follows.
    """
    length, left = 1, MOST_QUESTIONS
    for strings in language.short_strings(LONGEST, _SHORT):
        yield np.array(strings, dtype=np.int64)
        left -= length * len(strings)
        length += 1
    longest = min(language.max_length, LONGEST)
    for reach in sorted({length, max(length, longest // 4), longest} & set(range(1, longest + 1))):
        rows = language.walks(reach, _WALKS)
        if rows and left >= reach * len(rows):
            yield np.array(rows, dtype=np.int64)


def _asked(task: Task, names: list[str], letters: frozenset[str]) -> str | None:
    try:
        answer = task(names)
    except Exception as error:
        error.add_note(f"raised by the task on the sequence: {' '.join(names)}")
        raise
    if isinstance(answer, str):
        answer = str.__str__(answer)  # a subclass, such as NumPy's, has a repr and an equality of its own
    if answer is not None and (not isinstance(answer, str) or answer not in letters):
        near = close_to(answer, sorted(letters), ".")
        raise CheckpointError(
            f"the task answers {shown(answer)} on {' '.join(names)}; a token of the circuit or None is needed{near}"
        )
    return answer


def _compare(names: list[str], answers: list[str | None], scores: np.ndarray, letters: tuple[str, ...]) -> None:
    """CheckpointError at the first token behind which another letter than the answer scores strictly highest."""
    for t, answer in enumerate(answers):
        if answer is None:
            continue
        best = np.flatnonzero(scores[t] == scores[t].max())
        says = repr(letters[best[0]]) if len(best) == 1 else f"a tie of {len(best)} tokens"
        if says != repr(answer):
            raise CheckpointError(
                f"on {' '.join(names[: t + 1])}: the circuit answers {says}, the task {answer!r}; nothing is saved."
            )


def check_claim(claim: Mapping[str, Any], answers: Answers, compiled: Compiled) -> None:
    """CheckpointError where the task that a function claims to be answers otherwise than it did, or than the circuit
    does in the longest run of a letter, and where the checker refuses it as a task of this circuit:
    whoever verified the checkpoint would find that.
    """
    from verify.checker.formats import Rejected
    from verify.checker.tasks.task import check_fits, read_task

    language, end = compiled.source.token_language, compiled.source.end
    letters = language.alphabet.tokens
    try:
        stated = read_task(json.loads(json.dumps(claim)), letters)
        check_fits(stated, {"end": end}, letters, language.used)
    except (Rejected, TypeError, ValueError) as reason:
        raise CheckpointError(
            f"the task {answers.function} claims to be one that is refused: {reason}; nothing is saved."
        ) from reason
    ids = {name: i for i, name in enumerate(letters)}
    for asked in answers.sequences:
        claimed = stated.task.answers([ids[name] for name in asked.tokens])
        for t, (answer, said) in enumerate(zip(asked.answers, claimed, strict=True)):
            other = None if said is None else letters[said]
            if other != answer:
                raise CheckpointError(
                    f"on {' '.join(asked.tokens[: t + 1])}: the task {answers.function} answers {answer!r}, and what it"
                    f" claims to be answers {other!r}; nothing is saved."
                )
    for run in language.runs(min(language.max_length, LONGEST)):
        right = [None if said is None else letters[said] for said in stated.task.answers(run)]
        _compare([letters[i] for i in run], right, compiled.interpret(np.array([run]))[0], letters)


def _name(task: Task) -> str:
    name = getattr(task, "__name__", None)
    return one_line(name) if isinstance(name, str) and name.strip() else type(task).__name__


def _says(task: Task) -> str:
    text = inspect.getdoc(task) or ""
    return one_line(text.strip().splitlines()[0]) if text.strip() else ""


def answers_text(answers: Answers) -> str:
    """The text of answers.json: a line for each sequence."""
    lines = [json.dumps(vars(asked), ensure_ascii=False) for asked in answers.sequences]
    head = {"version": answers.version, "function": answers.function, "says": answers.says}
    listed = ",\n  ".join(lines)
    return json.dumps(head, ensure_ascii=False, indent=1)[:-2] + f',\n "sequences": [\n  {listed}\n ]\n}}\n'


def read_answers(path: Path, letters: tuple[str, ...], most: int | None = None) -> Answers:
    """The content of an answers.json; CheckpointError, one sentence, where it does not fit the circuit's letters, and
    where it asks nothing. most: tokens that the promise lets a sequence have, None where none is too long.
    """
    found = parse(Answers, read_json(path), path.name)
    if found.version != VERSION:
        raise CheckpointError(f"{path.name} has version {found.version}, expected {VERSION}.")
    known = set(letters)
    for i, asked in enumerate(found.sequences):
        if not asked.tokens or len(asked.tokens) != len(asked.answers):
            raise CheckpointError(
                f"{path.name}: sequences[{i}] has {len(asked.tokens)} tokens and {len(asked.answers)} answers."
            )
        odd = [name for name in (*asked.tokens, *asked.answers) if name is not None and name not in known]
        if odd:
            raise CheckpointError(
                f"{path.name}: sequences[{i}] names {shown(odd[0])}, and the circuit has no such token."
            )
        if most is not None and len(asked.tokens) > most:
            raise CheckpointError(
                f"{path.name}: sequences[{i}] has {len(asked.tokens)} tokens, and the promise is for at most {most:,}."
            )
    if not found.questions:
        raise CheckpointError(
            f"{path.name}: sequences asks nothing: "
            + ("every answer in it is null." if found.sequences else "it is an empty list.")
        )
    return found
