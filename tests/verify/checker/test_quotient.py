"""Values over classes of letters are the values: number by number, and no letter is taken for another."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from constructions.registry import CONSTRUCTIONS
from tests.circuits import CASES
from tests.verify.checker.checkpoints import write
from tests.verify.checker.fuzz import walks
from tests.verify.checker.values import Sequence
from verify.checker.arithmetic.model import prove_arithmetic
from verify.checker.check import check
from verify.checker.files import read
from verify.checker.meaning.quotient import classes, quotient


def _made(name: str):
    if name in CONSTRUCTIONS:
        construction = CONSTRUCTIONS[name](kappa=3, vocab=9)
        return construction.circuit(), construction.target
    return next(c for c in CASES if c.name == name).build(), "mamba"


@pytest.mark.parametrize("name", ["mqar", "mqar_once", "mqar_first", "first_and_last_latch", "count_since", "lis"])
def test_a_value_over_classes_is_the_value(name, tmp_path):
    if name == "lis":
        circuit, target = CONSTRUCTIONS[name](length=3, values=3).circuit(), "mamba"
    else:
        circuit, target = _made(name)
    directory = write(tmp_path / "c", circuit, target)
    model = prove_arithmetic(read(directory))
    promise = json.loads((directory / "construction.json").read_text())["promise"]
    language, rng, fewer = promise["language"] | {"length": promise["length"]}, random.Random(name), 0
    words = [walks(language, 1, 16, rng)[0].tolist() for _ in range(3)]
    for lane in [lane for lane in model.lanes if lane.ramps][-4:]:
        world, small = quotient(model.world, lane)
        first = classes(model.world, lane)
        letters = np.searchsorted(np.unique(first), first)
        fewer += world.language.tokens < model.world.language.tokens
        for word in words:
            whole, over = Sequence(model.world, word), Sequence(world, letters[word].tolist())
            for t in range(1, len(word) + 1):
                assert over.value(small, t) == whole.value(lane, t)
                for root in world.roots:
                    assert root.lo <= over.root(root.id, t) <= root.hi
    assert fewer or name not in ("mqar", "mqar_once")


@pytest.mark.parametrize("letter", [0, 2, 5, 70, 103])
def test_a_letter_among_many_alike_counts(letter, tmp_path):
    """One weight of one letter's embedding changed, among a hundred letters that are taken together."""
    directory = write(tmp_path / "c", CONSTRUCTIONS["mqar"](kappa=3, vocab=100, arch="mamba2").circuit(), "mamba2")
    assert check(directory).meaning is None
    tensors = load_file(directory / "model.safetensors")
    table = tensors["backbone.embeddings.weight"]
    for lane in np.flatnonzero(np.ptp(table[:104], axis=0))[[0, -1]]:
        changed = table.copy()
        low, high = table[:104, lane].min(), table[:104, lane].max()
        changed[letter, lane] = low if table[letter, lane] != low else high
        save_file(tensors | {"backbone.embeddings.weight": changed}, directory / "model.safetensors")
        verdict = check(directory)
        assert verdict.arithmetic or verdict.meaning
