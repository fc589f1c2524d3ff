"""Part D: every answer right. What each task asks, in plain words and as a program, and the proof that it is answered.

A manifest's claim says only which function is asked; what that function is stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from verify.checker.formats import EXACT, Rejected
from verify.checker.meaning.circuit import Reader
from verify.checker.meaning.conditions import Unproved
from verify.checker.meaning.told import unread
from verify.checker.tasks import questions
from verify.checker.tasks.answered import prove_answered
from verify.checker.tasks.matches import prove_matches
from verify.checker.tasks.names import Names, Stated
from verify.checker.tasks.paths import Asking, prove_paths
from verify.checker.tasks.questions import Ask
from verify.checker.tasks.reached import Unfit, prove_reached
from verify.checker.tasks.readout import NOBODY
from verify.checker.tasks.task_chains import read_coin_change, read_fibonacci, read_shortest_path, read_two_words
from verify.checker.tasks.task_copies import answers as machine_answers
from verify.checker.tasks.task_copies import number, read_copy, read_phonebook, read_selective_copy
from verify.checker.tasks.task_forms import ONCE, Pairs, States, Tally, ends, read_automaton, read_count, read_lookup
from verify.checker.tasks.task_matches import MATCHES, Matching
from verify.checker.tasks.task_recall import prove_recall
from verify.checker.tasks.task_steps import prove_clock, prove_count, prove_keep
from verify.checker.tasks.witness import NeverAsked, Question, Search, begun, check_asked
from verify.checker.unexpected import CIRCUIT, Unexpected, unexpected_told
from verify.checker.values.language import Language
from verify.checker.values.values import World
from verify.checker.values.windows import TooLarge

NO_LEAD = "that the right letter leads is not proved"


@dataclass(frozen=True, eq=False)
class Recall:
    """At a key: the value that stood right after an earlier occurrence of it.

    A pair is a value right after a key (a letter may be both). keeps: "first" and "last" ask for that pair's value
    among the pairs of the key up to here, the present letter included; "only" asks where there is exactly one.
    keys, values: ids; blank: the answer where there is none; None if nothing is asked there.
    """

    keys: np.ndarray
    values: np.ndarray
    keeps: str
    blank: int | None = None

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        """The right letter at each position, None where nothing is asked."""
        keys, values = set(self.keys.tolist()), set(self.values.tolist())
        found: list[int | None] = []
        for t, asked in enumerate(letters):
            pairs = [b for a, b in zip(letters[:t], letters[1 : t + 1], strict=True) if a == asked and b in values]
            if asked not in keys:
                found.append(None)
            elif not pairs:
                found.append(self.blank)
            elif self.keeps == "only" and len(pairs) > 1:
                found.append(None)
            else:
                found.append(pairs[-1] if self.keeps == "last" else pairs[0])
        return found

    def prove(self, reader: Reader) -> Fraction:
        return prove_recall(reader, self.keys, self.values, self.keeps, self.blank)

    def questions(self, ask: Ask) -> Iterator[Question]:
        return questions.of_pairs(ask, self.keys, self.values)


@dataclass(frozen=True)
class Keep:
    """From position n on (the first is 1): the letter that stood at n."""

    n: int

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        return [letters[self.n - 1] if t >= self.n else None for t in range(1, len(letters) + 1)]

    def prove(self, reader: Reader) -> Fraction:
        return prove_keep(reader, self.n)

    def questions(self, ask: Ask) -> Iterator[Question]:
        return questions.of_position(ask, self.n)


@dataclass(frozen=True, eq=False)
class Clock:
    """The position (the first is 1), as one of the letters `times` in this order; the last one also from there on."""

    times: np.ndarray

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        return [int(self.times[min(t, len(self.times) - 1)]) for t in range(len(letters))]

    def prove(self, reader: Reader) -> Fraction:
        return prove_clock(reader, self.times)

    def questions(self, ask: Ask) -> Iterator[Question]:
        states = np.arange(len(self.times) + 1)
        following = np.minimum(states + 1, states[-1])[:, None]
        return questions.of_states(ask, States(np.zeros(ask.count, int), 0, following, np.append(-1, self.times)))


@dataclass(frozen=True, eq=False)
class Runs:
    """How many letters `one` end here without a break, as one of `counts` (from 0 on); the last one for all longer."""

    one: int
    counts: np.ndarray

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        found: list[int | None] = []
        for t in range(1, len(letters) + 1):
            run = next((i for i in range(t) if letters[t - 1 - i] != self.one), t)
            found.append(int(self.counts[min(run, len(self.counts) - 1)]))
        return found

    def prove(self, reader: Reader) -> Fraction:
        used = reader.world.language.used
        return prove_count(reader, np.array([self.one]), used[used != self.one], self.counts)

    def questions(self, ask: Ask) -> Iterator[Question]:
        machine = Tally(np.array([self.one]), ask.others(np.array([self.one])), self.counts).machine(ask.count)
        return questions.of_states(ask, machine)


@dataclass(frozen=True, eq=False)
class Counts:
    """How many letters of one set there were since the last letter of another, as one of the answers (`Tally`)."""

    tally: Tally

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        of, since, count = set(self.tally.of.tolist()), set(self.tally.since.tolist()), 0
        found: list[int | None] = []
        for here in letters:
            count = 0 if here in since else count + (here in of)
            found.append(int(self.tally.answers[min(count, len(self.tally.answers) - 1)]))
        return found

    def prove(self, reader: Reader) -> Fraction:
        return prove_count(reader, self.tally.of, self.tally.since, self.tally.answers)

    def questions(self, ask: Ask) -> Iterator[Question]:
        return questions.of_states(ask, self.tally.machine(ask.count))


@dataclass(frozen=True)
class Walked:
    """A task as a machine over letters that are left open, which walks beside the circuit (lemma of open letters); one
    of finitely many states beside a circuit of finitely many, by all that is reached (lemma of known letters).
    """

    machine: Asking

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        if isinstance(self.machine, Pairs):  # whose situations are too many in a long text
            return self.machine.answers(letters)
        return machine_answers(self.machine, letters)

    def prove(self, reader: Reader) -> Fraction:
        if isinstance(self.machine, States):
            try:
                return prove_answered(reader, self.machine)
            except (Rejected, Unproved, TooLarge):
                pass
            try:
                return prove_reached(reader.world.language, reader.data, self.machine)
            except Unfit:
                pass
        return prove_paths(reader.world.language, reader.data, self.machine)

    def questions(self, ask: Ask) -> Iterator[Question]:
        return questions.of_machine(ask, self.machine)


@dataclass(frozen=True, eq=False)
class Either:
    """One task that two proofs are known for: by its own rule, or else by going through every situation (lemma of
    open letters).
    """

    rule: Recall | Counts
    walked: Walked

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        return self.rule.answers(letters)

    def prove(self, reader: Reader) -> Fraction:
        try:
            margin = self.rule.prove(reader)
            if margin > 0:
                return margin
            reason = NO_LEAD
        except (Rejected, Unproved, TooLarge) as refused:
            reason = str(refused)
        try:
            return self.walked.prove(reader)
        except (Rejected, Unproved, TooLarge) as refused:
            raise Rejected(f"{reason}; nor by every situation, one by one: {refused}") from refused

    def questions(self, ask: Ask) -> Iterator[Question]:
        return self.rule.questions(ask)


@dataclass(frozen=True)
class Matched:
    """What the earlier items say that are most like what stands here (lemma of matches)."""

    matching: Matching

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        return self.matching.answers(letters)

    def prove(self, reader: Reader) -> Fraction:
        return prove_matches(reader.world.language, reader.data, self.matching.places())

    def questions(self, ask: Ask) -> Iterator[Question]:
        return questions.of_matches(ask, self.matching)


Task = Recall | Keep | Clock | Runs | Walked | Counts | Either | Matched


def read_task(claim: object, letters: Sequence[str]) -> Stated[Task]:
    """The task that a claim names, {"name": …, its parameters}, over these letters; Rejected where there is none.

    A claim names no letters: a task finds them by the names that stand in its table (`Names`).
    """
    if not isinstance(claim, dict) or not isinstance(claim.get("name"), str):
        raise Rejected("the task is no object with a name")
    name, read = claim["name"], _Read(claim)
    try:
        if name in _TASKS:
            stated: Stated = _TASKS[name](read, Names(letters))
        elif name in _MACHINES:
            machine = _MACHINES[name](read, Names(letters))
            stated = replace(machine, task=Walked(machine.task))  # type: ignore[arg-type]
        elif name in MATCHES:
            matching = MATCHES[name](read, Names(letters))
            stated = replace(matching, task=Matched(matching.task))  # type: ignore[arg-type]
        else:
            raise Rejected(f"no proof is known for the task {name!r}")
    except KeyError as missing:
        raise Rejected(f"the task {name} has no parameter {missing}, or a value of it that is none") from missing
    except (TypeError, IndexError, OverflowError, AttributeError) as wrong:
        raise Rejected(f"the task {name} has a parameter of another kind than it needs") from wrong
    except ValueError as wrong:
        raise Rejected(f"the task {name} has other parameters than it needs: {wrong}") from wrong
    odd = set(claim) - {"name"} - read.taken
    if odd:
        raise Rejected(f"the task {name} has an entry {min(map(str, odd))!r} that the checker does not know")
    return stated


class _Read(dict):
    """A claim that remembers which of its entries were read: what is not read would mislead who reads the file."""

    def __init__(self, claim: dict):
        super().__init__(claim)
        self.taken: set[str] = set()

    def __getitem__(self, name: str):
        self.taken.add(name)
        return super().__getitem__(name)


_KEEPS = {"first": "first", "last": "last", "sum": "only"}
_OF_PAIRS = {"first": "first value", "last": "last value", "only": "value"}


def _read_mqar(claim: dict, names: Names) -> Stated[Task]:
    keys, values, keeps = names.numbered("k"), names.numbered("v"), _KEEPS[claim["write"]]
    once = f", where {ONCE}" if keeps == "only" else ""
    what = f"the {_OF_PAIRS[keeps]} of {names.shown(values)} that stood right after it before{once}"
    needed = np.append(keys, values)
    return Stated(Recall(keys, values, keeps), f"at each of {names.shown(keys)}: {what}", needed=needed)


def _read_induction(claim: dict, names: Names) -> Stated[Task]:
    letters, blank = names.numbered("v"), names.one("×")
    says = f"at each of {names.shown(letters)}: the letter that stood right after it the last time; {'×'!r} before that"
    return Stated(Recall(letters, letters, "last", blank), says, known=letters, needed=letters)


def _read_keep(claim: dict, names: Names) -> Stated[Task]:
    n = number(claim["n"])
    return Stated(Keep(n), f"from position {n} on (the first is 1): the letter that stood at it")


def _read_clock(claim: dict, names: Names) -> Stated[Task]:
    times = names.numbered("t", 1)
    return Stated(Clock(times), f"the position as {names.shown(times)}, the last one also from there on")


def _read_runs(claim: dict, names: Names) -> Stated[Task]:
    counts = names.numbered("c")
    says = f"how many letters {'1'!r} end here without a break, as {names.shown(counts)}, the last one for all longer"
    one = names.one("1")
    return Stated(Runs(one, counts), says, needed=np.array([one]))


def _read_automaton(claim: dict, names: Names) -> Stated[Task]:
    machine, says, moving = read_automaton(claim, names)
    return ends(claim, names, says, Walked(machine), needed=moving, known=moving)


def _read_lookup(claim: dict, names: Names) -> Stated[Task]:
    found, says = read_lookup(claim, names)
    walked, needed = Walked(found.machine(names.count)), np.append(found.keys, found.values)
    if isinstance(found.which, int):
        return ends(claim, names, says, walked, needed)
    rule = Recall(found.keys, found.values, found.which, found.blank)
    return ends(claim, names, says, Either(rule, walked), needed)


def _read_count(claim: dict, names: Names) -> Stated[Task]:
    tally, says = read_count(claim, names)
    task = Either(Counts(tally), Walked(tally.machine(names.count)))
    return ends(claim, names, says, task, np.append(tally.of, tally.since))


_TASKS: dict[str, Callable[[dict, Names], Stated[Task]]] = {
    "mqar": _read_mqar,
    "induction-heads": _read_induction,
    "keep-nth": _read_keep,
    "absolute-time": _read_clock,
    "count-in-row": _read_runs,
    "automaton": _read_automaton,
    "lookup": _read_lookup,
    "count": _read_count,
}

_MACHINES: dict[str, Callable[[dict, Names], Stated[Asking]]] = {
    "copy": read_copy,
    "selective-copy": read_selective_copy,
    "phonebook": read_phonebook,
    "edit-distance": read_two_words,
    "lcs": read_two_words,
    "fibonacci": read_fibonacci,
    "coin-change": read_coin_change,
    "shortest-path": read_shortest_path,
}


@dataclass(frozen=True)
class Answers:
    """What is proved of the answers. reason: None where every one is right, else why that is not proved.

    margin: the least lead of the right letter's score at every position that asks, in every sequence of the language;
    None where there is no other letter. says: what is asked, in words; None where the task could not be read. refused:
    whether it is no task of this circuit at all, whatever that answers: not to be read, of other letters or another end
    than it has, or never asked.
    """

    reason: str | None
    margin: Fraction | None = None
    says: str | None = None
    refused: bool = False


def check_fits(stated: Stated[Task], circuit: dict, letters: Sequence[str], used: np.ndarray) -> None:
    """Rejected where a task is of other letters than the language holds (`used`, ids), or of another end of a text."""
    stated.check_letters(letters, used)
    if circuit.get("end") != stated.end:
        raise Rejected(f"circuit.json ends a text with {circuit.get('end')!r}, and the task with {stated.end!r}")


def prove_task(language: Language, circuit: dict, claim: object) -> Answers:
    """Hold the circuit of circuit.json to the task that a manifest claims."""
    says, fits = None, False
    try:
        with unexpected_told("an entry of the task"):
            letters = _letters(circuit, language)
            stated = read_task(claim, letters)
            says = stated.says
            check_fits(stated, circuit, letters, language.used)
            search, fits = Search(language), True
            asked = begun(stated.task.questions(Ask(search, letters)))
            margin = _margin(language, circuit, stated.task)
            check_asked(search, asked, stated.task.answers)
            return Answers(None, margin, says)
    except Rejected as reason:
        unfit = not fits and not isinstance(reason, Unexpected)
        return Answers(str(reason), None, says, unfit or isinstance(reason, NeverAsked))


def _letters(circuit: dict, language: Language) -> list[str]:
    letters = circuit.get("alphabet")
    if not isinstance(letters, list) or not all(isinstance(name, str) for name in letters):
        raise Rejected("circuit.json names no letters")
    if len(letters) != language.tokens:
        raise Rejected(f"circuit.json names {len(letters)} letters, and the language has {language.tokens}")
    return letters


def _margin(language: Language, circuit: dict, task: Task) -> Fraction | None:
    """`Answers.margin`; Rejected, in one sentence, where it is not proved to be positive, or nothing is ever asked."""
    reader = Reader(World(language, EXACT), circuit)
    try:
        with unexpected_told(CIRCUIT):
            margin = task.prove(reader)
    except Unproved as reason:
        raise Rejected(unread(reader, reason)) from reason
    except TooLarge as reason:
        raise Rejected(str(reason)) from reason
    if margin <= 0:
        raise Rejected(NO_LEAD)
    if margin >= NOBODY and language.tokens > 1:
        raise NeverAsked("no sequence of the language asks the task's question")
    return margin if margin < NOBODY else None
