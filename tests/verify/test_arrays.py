"""`.npz` files that are none, or lie: a sentence that names the option and the file, before anything is unpacked."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from constructions.polynomials.commands import _loaded
from verify.tasks.recorded import Recorded

NAMES = ("inputs", "labels", "W_Q", "W_K", "W_V")


def arrays(**given: object) -> Callable[[Path], None]:
    """The arrays of both commands, some of them others."""
    plain = {"inputs": np.zeros((2, 3), int), "labels": np.full((2, 3), -100)}
    plain |= {name: np.ones((2, 3)) for name in NAMES[2:]}
    return lambda path: np.savez_compressed(path, **(plain | given))


def each(make: Callable[[], np.ndarray]) -> Callable[[Path], None]:
    return lambda path: np.savez_compressed(path, **{name: make() for name in NAMES})


def header(text: str) -> Callable[[Path], None]:
    """Arrays of these headers without a number behind them."""

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name in NAMES:
                archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())

    return write


def described(shape: str, kind: str = "<i8") -> Callable[[Path], None]:
    return header(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}\n")


def cut(path: Path) -> None:
    arrays()(path)
    path.write_bytes(path.read_bytes()[:-30])


def twice(first: str, second: str) -> Callable[[Path], None]:
    """A part of each array's name that would unpack to more than is read, and one of it that is small."""

    def write(path: Path) -> None:
        arrays()(path)
        with zipfile.ZipFile(path) as small:
            held = {info.filename: small.read(info) for info in small.infolist()}
        huge = held["W_Q.npy"].replace(b"(2, 3)", b"(%d,)" % (1 << 40))
        with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
            warnings.simplefilter("ignore")  # that there is one of this name already
            for name in NAMES:
                archive.writestr(name + first, huge)
                archive.writestr(name + second, held[f"{name}.npy"])

    return write


BAD = {
    "two of a name": (twice("", ".npy"), "has more than one array"),
    "two of a name, the other first": (twice(".npy", ""), "has more than one array"),
    "one name twice": (twice(".npy", ".npy"), "has more than one array"),
    "text": (lambda path: path.write_text("hello"), "no .npz file"),
    "nothing": (lambda path: path.write_bytes(b""), "no .npz file"),
    "directory": (lambda path: path.mkdir(), "cannot be read: it is a directory"),
    "missing": (lambda path: None, "cannot be read: no such file"),
    "cut": (cut, "no .npz file"),
    "other arrays": (lambda path: np.savez(path, a=np.ones(2)), "has no array"),
    "objects": (each(lambda: np.array([[print]], dtype=object)), "holds object, and numbers are needed"),
    "texts": (each(lambda: np.array([["a"]])), "holds <U1, and numbers are needed"),
    "complex": (each(lambda: np.ones((2, 3), complex)), "holds complex128, and numbers are needed"),
    "a bomb": (each(lambda: np.zeros((1 << 20, 40), np.int64)), "which is more than 268435456 bytes"),
    "a huge shape": (described("(1000000000000, 1000000000000)"), "which is more than 268435456 bytes"),
    "fewer bytes": (described("(2, 3)"), "is cut"),
    "a negative shape": (described("(-2, 3)"), "sizes are whole numbers of 0 or more"),
    "a truth value as a size": (described("(True, 3)"), "sizes are whole numbers of 0 or more"),
    "no shape": (header("{'descr': '<i8', 'fortran_order': False, 'shape': (2,\n"), "is no array"),
    "bytes": (described("(2, 3)", "|V8"), "holds |V8, and numbers are needed"),
    "scalars": (each(lambda: np.float64(1)), "shape"),
}
DATA = {
    "empty": (each(lambda: np.zeros((0, 3), int)), "are empty, and at least one sequence"),
    "floats": (arrays(inputs=np.zeros((2, 3))), "inputs hold float64, and they must be integers"),
    "NaN": (arrays(labels=np.full((2, 3), np.nan)), "labels hold float64, and they must be integers"),
    "beyond": (arrays(inputs=np.full((2, 3), 7)), "inputs hold 7, and they must be token ids from 0 to 6"),
    "below": (arrays(inputs=np.full((2, 3), -1)), "inputs hold -1, and they must be token ids from 0 to 6"),
    "labels": (arrays(labels=np.full((2, 3), -5)), "labels hold -5, and they must be token ids from 0 to 6"),
    "beyond int64": (arrays(inputs=np.full((2, 3), 2**63, np.uint64)), "inputs hold 9223372036854775808"),
    "shapes": (arrays(labels=np.zeros((3, 2), int)), "must have one common shape"),
}
WEIGHTS = {
    "empty": (each(lambda: np.zeros((0, 3), int)), "a matrix is empty"),
    "NaN": (arrays(W_Q=np.full((2, 3), np.nan)), "is nan, and numbers from"),
    "infinite": (arrays(W_V=np.full((2, 3), np.inf)), "is inf, and numbers from"),
    "shapes": (arrays(W_K=np.ones((3, 3))), "have the shapes (2, 3), (3, 3), (2, 3)"),
}


def refusal(read: Callable[[Path], object], path: Path) -> str:
    with pytest.raises(ValueError) as caught:
        read(path)
    said = str(caught.value)
    assert said and len(said.splitlines()) == 1 and len(said) < 500
    return said


@pytest.mark.parametrize(("make", "words"), (BAD | DATA).values(), ids=BAD | DATA)
def test_data(make: Callable[[Path], None], words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    make(path)
    said = refusal(lambda path: Recorded(path, 7), path)
    assert words in said and said.startswith(f"--data {path}")


@pytest.mark.parametrize(
    ("make", "words"), [*BAD.values(), *WEIGHTS.values()], ids=[*BAD, *(f"weights: {name}" for name in WEIGHTS)]
)
def test_weights(make: Callable[[Path], None], words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    make(path)
    assert words in refusal(_loaded, path)


def test_good_arrays_are_read(tmp_path: Path) -> None:
    arrays()(path := tmp_path / "good.npz")
    assert Recorded(path, 7).length == 3 and _loaded(path).query.shape == (2, 3)
