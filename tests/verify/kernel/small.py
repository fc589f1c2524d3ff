"""The checkpoints of the gate in small sizes, and the page's table of what the kernel proves of them.

python -m tests.verify.kernel.small writes the table into docs/proofs.md.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path

from constructions.registry import CONSTRUCTIONS
from tests.verify.checker.checkpoints import write
from tests.verify.kernel.page import put, said
from verify.kernel.certificate import replay, written
from verify.kernel.floats import Unproved
from verify.kernel.proof import Proof
from verify.prover.prove import search
from verify.tasks.chain import Solver

ROOT = Path(__file__).parents[3]
GATE: dict[str, dict] = {
    "mqar": {"kappa": 4, "vocab": 8},
    "keep-nth": {"n": 3, "vocab": 8},
    "induction-heads": {"vocab": 5},
    "selective-copy": {"n": 2, "vocab": 2, "length": 6},
    "edit-distance": {"length": 3, "distinct_letters": 2},
    "lis": {"length": 4, "values": 4},
    "viterbi": {"length": 3},
}
NAMED: dict[str, tuple[str, dict]] = {
    "absolute-time": ("absolute-time", {"horizon": 6}),
    "count-in-row": ("count-in-row", {"largest": 5}),
    **{
        f"copy-{form}": ("copy", {"form": form, "n": 4, "vocab": 2}) for form in ("string", "delay", "pointer", "place")
    },
    "copy-ngram": ("copy-ngram", {"n": 2, "vocab": 2, "length": 3}),
    "fibonacci": ("fibonacci", {"modulus": 3, "length": 4}),
    "coin-change": ("coin-change", {"amount": 4}),
    "shortest-path": ("shortest-path", {"nodes": 3, "lengths": 1}),
    "mqar-last": ("mqar", {"kappa": 2, "vocab": 2, "write": "last"}),
    "mqar-first": ("in-context-recall", {"vocab": 4, "length": 8, "max_length": 16}),
    "mqar-first-write": ("mqar", {"kappa": 1, "vocab": 2, "write": "first"}),
    "recall": ("recall", {"keys": 2, "values": 2, "pairs": 2}),
    "unique-induction": ("unique-induction", {"vocab": 3, "length": 5}),
    "token-selection": ("token-selection", {"size": 4, "values": 2, "length": 3}),
}
"""Other tasks that the manifest names: the construction, and its sizes."""
TARGETS = ("mamba", "mamba2")
CASES = [(name, target) for name in NAMED for target in TARGETS]


def make(directory: Path, name: str, target: str, dtype: str = "float32", **sizes: int) -> Path:
    """One of these checkpoints in a new directory; sizes: others than those of the gate."""
    name, own = NAMED.get(name) or (name, GATE[name])
    construction = CONSTRUCTIONS[name](**own | sizes, arch=target, dtype=dtype)
    circuit = construction.circuit()
    task = construction.asks() or chains(construction.solver(), circuit.end)
    return write(directory, circuit, target, dtype, task=task)


def chains(solver: Solver, end: str) -> dict:
    """The task of a solver whose construction names none, as an automaton: it remembers the prompt so far, and then
    what is still to be written.
    """
    moves: dict[str, dict[str, str]] = {}
    answers: dict[str, str] = {}
    for prompt in solver.prompts():
        chain = solver.chain(prompt)
        rest = [f"> {' '.join(chain[i:])}" for i in range(len(chain))]
        states = [" ".join(prompt[:i]) for i in range(len(prompt))] + rest
        for state, letter, after in zip(states, (*prompt, *chain), states[1:], strict=False):
            moves.setdefault(state, {})[letter] = after
        answers |= zip(rest, chain, strict=True)
    return {"name": "automaton", "start": "", "transitions": moves, "classes": answers, "end": end}


_once = cache(search)


def searched(directory: Path) -> tuple[Proof, list]:
    """What a search proves of a checkpoint whose files stay as they are, and by which claims: searched once."""
    return deepcopy(_once(directory))


def only_new(place, subjects):
    """Claims nothing, but that no atom of the circuit equals one of the weights, and that long counts outgrow."""
    return ["new"] if place.endswith("a new atom") else ["outgrows"] if place.endswith("a count") else None


def copied(directory: Path, place: Path, **files: dict) -> Path:
    """The checkpoint in another directory, with other contents of files NAME.json."""
    shutil.copytree(directory, place, dirs_exist_ok=True)
    for name, content in files.items():
        (place / f"{name}.json").write_text(json.dumps(content))
    return place


def outcome(directory: Path) -> str:
    """What the kernel proves of a checkpoint, in words for the table: of a claim that it replays, or where it stops."""
    try:
        claims = searched(directory)[1]
    except Unproved as reason:
        return f"stops: {reason}"
    text = written(claims)
    proof = replay(directory, json.loads(text)["claims"])
    what = "all" if proof.task else "arithmetic and meaning; no task is stated"
    return f"{what}: {len(claims)} claims, {len(text):,} bytes"


QUICK = ("mqar", "keep-nth", "induction-heads", "selective-copy")  # less than two CPU seconds each


def table(names: Sequence[str] = tuple(GATE), made: Callable[[Path, str, str], Path] = make) -> str:
    """The page's rows of these circuits, which stand there first. made: the checkpoint of a circuit and a target."""
    lines = ["| circuit | on Mamba | on Mamba-2 |", "| --- | --- | --- |"]
    with tempfile.TemporaryDirectory() as root:
        for name in names:
            cells = [outcome(made(Path(root) / f"{name}-{target}", name, target)) for target in TARGETS]
            sizes = ", ".join(f"{key} = {value}" for key, value in GATE[name].items())
            lines.append(f"| `{name}` ({sizes}) | {' | '.join(cells)} |")
    return "\n".join(lines)


TABLE = ("| circuit | on Mamba | on Mamba-2 |", "\n\n<!-- end of the gate -->")

if __name__ == "__main__":
    put(said(*TABLE), table())
