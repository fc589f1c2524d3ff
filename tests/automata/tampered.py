"""Change one thing of an automaton's checkpoint and ask the checker: python -m tests.automata.tampered [count] [first]
[--json]

A case is a named or random automaton on a mixer, with one weight, one number of the circuit, two letters' names or one
entry of the table that it is said to follow changed. What is still proved must be true: the library's model answers the
words as a walk through the table says, as it is claimed now. A checkpoint that is not proved unchanged is counted as
that, for its changes would say nothing. Exit code 1 where something false was proved.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from constructions.automata.automaton import Automaton, table_json
from constructions.automata.languages import NAMED
from constructions.automata.random_automata import drawn
from tests import numbered
from tests.verify.checker.checkpoints import write
from tests.verify.checker.claims import edit
from verify.checker.check import check

STAR_FREE = ("tomita-2", "tomita-4", "flip-flop", "ends-with-abb", "at-most-two-a", "dyck-1-2")
WITH_GROUPS = ("parity", "tomita-3", "abab-star", "s3")
RANDOM_STATES = 5
A_CHECKPOINT = 10  # cases in a row change the same checkpoint
FILES = ("construction.json", "circuit.json", "config.json")
WORDS, LENGTH = 24, 120
UNPROVED = "not proved unchanged"


def case(number: int) -> dict[str, Any]:
    """What became of a case: its kind, its verdict, and what is false of it, None where nothing is."""
    rng = random.Random(f"tampered automaton {number}")
    name, arch = _checkpoint(number // A_CHECKPOINT)
    how = rng.choice(list(CHANGES))
    files, tensors, as_it_is = _built(name, arch)
    if not as_it_is:
        return {"kind": how, "verdict": UNPROVED, "failure": None}
    with tempfile.TemporaryDirectory() as scratch:
        changed = json.loads(files)
        weights = {key: tensor.clone() for key, tensor in tensors.items()}
        said = CHANGES[how](changed, weights, rng)
        _saved(Path(scratch), changed, weights)
        proved = _proved(Path(scratch))
        wrong = _wrong(Path(scratch), changed, rng) if proved else None
    outcome = "rejected" if not proved else "still true" if wrong is None else "false"
    told = None if wrong is None else f"case {number}, {name} on {arch}, {how} {said}: {wrong}"
    return {"kind": how, "verdict": outcome, "failure": told}


def _checkpoint(number: int) -> tuple[str, str]:
    """The automaton and the mixer of a checkpoint, in turn."""
    rng = random.Random(f"tampered checkpoint {number}")
    arch = ("mamba", "mamba2", "gated-deltanet")[number % 3]
    if arch != "gated-deltanet":
        return rng.choice(STAR_FREE), arch
    drawn_small = (f"random {i}" for i in iter(lambda: rng.randrange(500), None) if drawn(i).states <= RANDOM_STATES)
    return rng.choice((rng.choice(STAR_FREE), rng.choice(WITH_GROUPS), next(drawn_small))), arch


@lru_cache(maxsize=1)
def _built(name: str, arch: str) -> tuple[str, dict[str, torch.Tensor], bool]:
    """The files of an automaton's checkpoint as text, its weights, and whether it is proved as it is."""
    table = drawn(int(name.split()[1])) if name.startswith("random") else NAMED[name].make()
    automaton = Automaton(table=table_json(table), arch=arch)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as scratch:
        saved = write(Path(scratch) / "checkpoint", automaton.circuit(), automaton.target, task=automaton.asks())
        files = {file: json.loads((saved / file).read_text()) for file in FILES}
        return json.dumps(files), load_file(saved / "model.safetensors"), _proved(saved)


def _proved(directory: Path) -> bool:
    """Whether everything is proved, its answers included."""
    verdict = check(directory)
    return verdict.accepted and verdict.task is None


def _saved(directory: Path, files: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    for name, content in files.items():
        (directory / name).write_text(json.dumps(content))
    save_file(weights, directory / "model.safetensors", {"format": "pt"})


def _weight(files: dict[str, Any], weights: dict[str, torch.Tensor], rng: random.Random) -> str:
    """One weight, mostly one that is not 0."""
    name = rng.choice([name for name, tensor in weights.items() if tensor.any()])
    flat = weights[name].view(-1)
    live = flat.nonzero().view(-1).tolist()
    at = rng.choice(live) if rng.random() < 0.7 else rng.randrange(len(flat))
    old = float(flat[at])
    others = (0.0, -old, 2 * old, old / 2, old + 1, old * (1 + 2**-20), 1.0, -1.0, 64.0, old - 128)
    flat[at] = rng.choice([other for other in others if other != old])
    return f"{name}[{at}] from {old} to {float(flat[at])}"


def _letters(files: dict[str, Any], weights: dict[str, torch.Tensor], rng: random.Random) -> str:
    """The names of two letters, exchanged wherever the circuit names its letters."""
    names = files["circuit.json"]["alphabet"]
    a, b = rng.sample(range(len(names)), 2)
    names[a], names[b] = names[b], names[a]
    return f"{names[a]} and {names[b]}"


def _table(files: dict[str, Any], weights: dict[str, torch.Tensor], rng: random.Random) -> str:
    """An entry of the table that the manifest claims: where a letter leads, a state's answer, or the start."""
    task = files["construction.json"]["task"]
    states = sorted(task["transitions"])
    state, letter = rng.choice(states), rng.choice(sorted(task["transitions"][states[0]]))
    moves, answers = task["transitions"][state], sorted(set(task["classes"].values()))
    move = (moves, letter, states)
    within, entry, values = rng.choice((move, move, (task["classes"], state, answers), (task, "start", states)))
    old = within[entry]
    within[entry] = rng.choice([value for value in values if value != old] or [old])
    return f"of {state}: {entry} from {old} to {within[entry]}"


def _value(files: dict[str, Any], weights: dict[str, torch.Tensor], rng: random.Random) -> str:
    """One value of the promise, the circuit or the config."""
    return edit(files, rng)


CHANGES: dict[str, Callable[[dict[str, Any], dict[str, torch.Tensor], random.Random], str]] = {
    "weight": _weight,
    "letters": _letters,
    "table": _table,
    "value": _value,
}


def _wrong(directory: Path, files: dict[str, Any], rng: random.Random) -> str | None:
    """Where the library's model answers another thing than the table that is claimed."""
    task, names = files["construction.json"]["task"], files["circuit.json"]["alphabet"]
    letters = [names.index(letter) for letter in next(iter(task["transitions"].values()))]
    words = [[rng.choice(letters) for _ in range(LENGTH)] for _ in range(WORDS)]
    with torch.no_grad():
        said = AutoModelForCausalLM.from_pretrained(directory)(torch.tensor(words)).logits.argmax(dim=-1).tolist()
    for word, answers in zip(words, said, strict=True):
        state = task["start"]
        for at, (letter, answer) in enumerate(zip(word, answers, strict=True)):
            state = task["transitions"].get(state, {}).get(names[letter])
            if state is None:  # nothing is asked behind a letter that leads nowhere
                break
            right = task["classes"].get(state)
            if right is None:  # nothing is asked in this state
                continue
            if answer >= len(names) or names[answer] != right:
                return f"{right} is right at position {at} of {[names[one] for one in word]}, and it says {answer}"
    return None


def counted(first: int, count: int) -> dict[str, Any]:
    """The verdicts of cases by their kind, and what is false."""
    found = [case(number) for number in range(first, first + count)]
    kinds = {kind: dict(Counter(one["verdict"] for one in found if one["kind"] == kind)) for kind in CHANGES}
    verdicts = dict(Counter(one["verdict"] for one in found))
    return {"kinds": kinds, "verdicts": verdicts, "failures": [one["failure"] for one in found if one["failure"]]}


if __name__ == "__main__":
    sys.exit(numbered.main(__doc__, counted, 200))
