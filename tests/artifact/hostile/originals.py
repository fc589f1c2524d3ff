"""Good checkpoints, before anything is done to them, and their seals."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from compiler import (
    Alphabet,
    Circuit,
    InputLanguage,
    Int,
    Real,
    Tokens,
    compile,
    count,
    dot,
    numbers,
    readout_integer,
)
from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import MANIFEST, SEALED_FILES
from compiler.artifact.manifest import sealed
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.checkpoints.guarantee import proof_of
from constructions.selectivity.mqar import MQAR


def make(root: Path) -> list[Path]:
    """Two good checkpoints: a construction with a proof, and a circuit of one's own."""
    built = build(MQAR(kappa=2, vocab=3, length=16, max_length=64))
    artifact.save(built, {}, root / "mqar", None, proof_of(built))
    letters = Alphabet.of("a", "b", *(str(n) for n in range(5)))
    x = Tokens(letters)
    answer = readout_integer(count(x.is_in("a"), reset=x.is_in("b")), letters, {str(n): n for n in range(5)})
    language = InputLanguage.of(letters, "any", [("any", "any", ("a", "b"))], 4, "strings of a and b")
    compile(Circuit("count-since", answer, language, end="b")).save(root / "own")
    return [root / "mqar", root / "own"]


def make_over_numbers(root: Path) -> list[Path]:
    """Three good models over numbers: exact ones on two mixers, and one with real inputs and a bound on its error."""
    n, x = numbers(Int(-9, 9), "n"), numbers(Real(-8, 8, 2), "x")
    compile(Circuit("sums", n.cumsum() - 3 * n.shift(1), length=6), "mamba2").save(root / "sums")
    compile(Circuit("products", n.cumsum() * n, length=4)).save(root / "products")
    compile(Circuit("reals", dot(x, x) * n, length=4)).save(root / "reals")
    return [root / name for name in ("sums", "products", "reals")]


MAKERS = {"tokens": make, "numbers": make_over_numbers, "oversized": make}


def files_of(directory: Path) -> tuple[str, ...]:
    """The files of a good checkpoint that its manifest seals, and the manifest."""
    return (*(name for name in SEALED_FILES if (directory / name).exists()), MANIFEST)


def reseal(directory: Path, files: tuple[str, ...]) -> None:
    """Write the manifest anew around the files, where that can be done."""
    path = directory / MANIFEST
    if not all((directory / name).is_file() for name in files):
        return  # reading a pipe would wait for ever
    with suppress(OSError, ValueError, RecursionError, CheckpointError):
        content = json.loads(path.read_text())
        if isinstance(content, dict):
            path.write_text(json.dumps(sealed(content, directory)))  # quicker than the canonical text
