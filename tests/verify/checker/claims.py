"""Edit one claim of a checkpoint and ask the checker: what it then accepts must be true of the unchanged weights.

Claims are what the checker reads beside the weights: the promise (input language, length, dtype), the circuit, the
config. Where it accepts an edited claim, the real module must give, on walks of the language as it is claimed now,
the numbers that the circuit gives as it is claimed now.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from safetensors.numpy import load_file

import verify.checker.check
from compiler.interpreter import interpret
from compiler.language.circuit import Circuit
from compiler.language.data import from_data
from compiler.language.data.scalars import DataError
from compiler.language.operations import Decide
from tests.verify.checker.forks import alone
from tests.verify.checker.fuzz import Real, walks
from verify.checker.arithmetic.model import Proved, prove_arithmetic
from verify.checker.check import check
from verify.checker.files import read

FILES = {"construction.json": ("promise",), "circuit.json": ("streams", "output", "codebooks"), "config.json": ()}
OPERATIONS = ("Relu", "Shift", "Cumsum", "Latch", "Product", "Linear", "RunningMax", "Count", "And", "Not")
SEQUENCES = 12
POLICIES = ("sum", "first", "last", "once")


def edit(files: dict[str, dict], rng: random.Random) -> str:
    """Change one value somewhere in one of the files, and say where; "" where nothing changed."""
    name = rng.choice(("construction.json", "circuit.json", "circuit.json", "circuit.json", "config.json"))
    whole = files[name]
    place: Any = whole
    key: Any = rng.choice(FILES[name] or sorted(whole))
    where = f"{name}: {key}"
    while isinstance(place[key], dict | list) and place[key]:
        place = place[key]
        key = rng.choice(sorted(place)) if isinstance(place, dict) else rng.randrange(len(place))
        where += f".{key}"
        if isinstance(place, list) and rng.random() < 0.05:
            del place[key]
            return f"{where} left out"
    old = place[key]
    place[key] = _other(old, rng)
    return "" if old == place[key] and type(old) is type(place[key]) else f"{where}: {old!r} to {place[key]!r}"[:200]


def _other(old: Any, rng: random.Random) -> Any:
    """Another value of the same kind."""
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return rng.choice((old + 1, old - 1, 2 * old, -old, 0, 1, old + 1000, old + 2**24))
    if isinstance(old, float):
        return rng.choice((-old, 2 * old, old + 1, 0.0))
    if old is None:
        return rng.choice((0, 1, 5, 2**24))
    if isinstance(old, str):
        return rng.choice((*POLICIES, *OPERATIONS, "float32", "bfloat16", "float16", "any", "1/2", "3"))
    return rng.choice((None, 0, 1))


def meant(edited: dict, original: dict) -> Circuit:
    """The circuit that edited data means; DataError where it means none.

    The checker does not ask whether a circuit is well kept: declared types, which it proves itself, are taken from the
    original, and streams that nothing reads are left out.
    """
    streams = [dict(stream) for stream in edited["streams"]]
    for stream, was in zip(streams, original["streams"]):
        stream["type"], stream["name"], stream["source"] = was["type"], was["name"], was["source"]
    read, pending = set(), [edited["output"]]
    while pending:
        i = pending.pop()
        if i not in read:
            read.add(i)
            pending += streams[i]["inputs"]
    place = {old: new for new, old in enumerate(sorted(read))}
    kept = [streams[i] | {"inputs": [place[k] for k in streams[i]["inputs"]]} for i in sorted(read)]
    books = edited["codebooks"] if original["codebooks"] else []
    return from_data(original | {"streams": kept, "output": place[edited["output"]], "codebooks": books})


def false(files: dict[str, dict], circuit: Circuit, tensors: dict, real: Real, rng: random.Random) -> str | None:
    """Where the module does not do what the files say now; None if nowhere on the samples."""
    promise = files["construction.json"]["promise"]
    for length in (8, 24, 150):
        words = walks(promise["language"] | {"length": promise["length"]}, SEQUENCES, length, rng)
        if not words.size:
            continue
        expected = interpret(circuit, words)[circuit.output].astype(np.float64)
        got = real.logits(tensors, words)[..., : expected.shape[-1]]
        different = np.argwhere(_wrong(circuit, got, expected))
        if len(different):
            b, t, i = different[0]
            return f"score {i} at {t} of {words[b].tolist()} is {got[b, t, i]!r}, as claimed {expected[b, t, i]!r}"
    return None


def _wrong(circuit: Circuit, got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where scores differ; of tokens with a rule, whose weight is free, where one wins in one of them alone."""
    wrong = ~(got == expected)
    rule = circuit.output.operation
    if isinstance(rule, Decide):
        wrong[..., list(rule.tokens)] = False
        wrong |= _largest(got) != _largest(expected)
    return wrong


def _largest(scores: np.ndarray) -> np.ndarray:
    return scores == scores.max(axis=-1, keepdims=True)


def _accepted(directory: str, known: Proved | None) -> bool:
    """known: what the weights compute, where no claim of them was edited; a child compares the circuit with it."""
    if known is None:
        return check(directory).accepted
    with mock.patch.object(verify.checker.check, "prove_arithmetic", lambda checkpoint, together: known):
        return alone(lambda: check(directory).accepted)


def claims(directory: Path, count: int, rng: random.Random) -> tuple[Counter, list[str]]:
    """(how often each verdict came out, the false claims that were accepted) of a checkpoint that is accepted.

    rejected; still true; "no circuit": what the compiler, and so `construct verify`, refuses to read; false.
    """
    tensors, tally, missed = load_file(directory / "model.safetensors"), Counter(), []
    originals = {name: (directory / name).read_text() for name in FILES}
    known, real = prove_arithmetic(read(directory)), None
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "model.safetensors").symlink_to(directory / "model.safetensors")
        for _ in range(count):
            files = {name: json.loads(text) for name, text in originals.items()}
            how = edit(files, rng)
            if not how:
                continue
            promise, said = files["construction.json"]["promise"], files["circuit.json"]["promise"]
            said |= {name: promise.get(name) for name in said}  # a contradiction alone would be rejected
            for name, content in files.items():
                (Path(scratch) / name).write_text(json.dumps(content))
            changed = [name for name, text in originals.items() if json.loads(text) != files[name]]
            if not _accepted(scratch, known if changed == ["circuit.json"] else None):
                tally["rejected"] += 1
                continue
            try:
                circuit = meant(files["circuit.json"], json.loads(originals["circuit.json"]))
            except (DataError, LookupError, TypeError):
                tally["no circuit"] += 1
                continue
            real = real or Real(json.loads(originals["config.json"]))
            problem = false(files, circuit, tensors, real, rng)
            tally["false" if problem else "still true"] += 1
            if problem:
                missed.append(f"{directory.name}: {how}: {problem}")
    return tally, missed
