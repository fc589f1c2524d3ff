"""Gated DeltaNets proved from their weights: swaps, resets, overwritten memories; changed weights are not proved."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from compiler import compile, memory, permute
from compiler.compiled import run_blocks
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_one_hot
from compiler.language.source import Tokens
from compiler.language.words import latch
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.languages import NAMED
from constructions.registry import CONSTRUCTIONS
from tests.circuits import is_b, over_abc, token
from tests.spread import some
from tests.verify.checker.changed import changed, contents
from tests.verify.checker.checkpoints import write
from verify.checker.check import check, prove
from verify.checker.delta_family import check_config
from verify.checker.formats import FORMATS, Rejected
from verify.checker.values.language import parse
from verify.checker.values.machines import machine
from verify.checker.values.together import exclusive, on_together
from verify.checker.values.values import World, combine, constant, later, of_letters

NEIGHBOURS = [(0, 1), (1, 2), (2, 3), (3, 4)]
SWAPPED = {
    "parity": (2, [(0, 1)], 0, False),
    "S_5": (5, NEIGHBOURS, 2, False),
    "a triangle, which turns the sign": (3, [(0, 1), (1, 2), (0, 2)], 0, False),
    "a start that is never moved": (3, [(1, 2), (2, 1)], 0, False),
    "resets": (4, NEIGHBOURS[:3], 0, True),
    "placed by resets": (3, NEIGHBOURS[:2], None, True),
}


def _swaps(n: int, pairs: list, start: int | None, resets: bool) -> Circuit:
    swaps, puts = [f"s{i}" for i in range(len(pairs))], [f"r{j}" for j in range(n)]
    letters = Alphabet.of(*swaps, "x", *(puts if resets else []))
    tokens = Tokens(letters)
    state = permute(start, tokens.one_hot(swaps), pairs, tokens.one_hot(puts) if resets else None)
    return Circuit(
        "walk", readout_one_hot(state, letters, list(letters.tokens[:n])), InputLanguage.everything(letters, None)
    )


def _memory(deletes: bool = False) -> Circuit:
    """The last value under each of three keys, written by a key and then a value; deleted by a key and then an x."""
    letters = Alphabet.of("k0", "k1", "k2", "v0", "v1", "v2", "x")
    tokens = Tokens(letters)
    keys, values = ([f"{name}{i}" for i in range(3)] for name in "kv")
    key, value = tokens.one_hot(keys), tokens.one_hot(values)
    held = memory.write(key=key.shift(1), value=value, policy="last", when=tokens.is_in(values))
    read = (held.delete(tokens.is_in("x")) if deletes else held).read(key)
    return Circuit("memory", readout_one_hot(read, letters, values), InputLanguage.everything(letters, 1 << 20))


def checkpoint(directory: Path, name: str) -> Path:
    if name == "memory":
        return write(directory, _memory(), "gated-deltanet-qwen")
    return write(directory, _swaps(*SWAPPED[name]), "gated-deltanet")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", SWAPPED)
def test_swapped_states_are_proved_for_every_length(tmp_path, name, dtype) -> None:
    verdict = check(write(tmp_path / "at", _swaps(*SWAPPED[name]), "gated-deltanet", dtype))
    assert verdict.weights is None and "of every length" in verdict.domain, verdict.lines()


@pytest.mark.parametrize("target", ["gated-deltanet", "gated-deltanet-qwen"])
@pytest.mark.parametrize("deletes", [False, True])
def test_a_memory_that_overwrites_is_proved(tmp_path, target, deletes) -> None:
    verdict = check(write(tmp_path / "at", _memory(deletes), target))
    assert verdict.weights is None, verdict.lines()


def test_what_a_key_held_is_gone_where_it_is_deleted() -> None:
    """Beside a dict, on all words of five tokens of one key and two values, and on random ones."""
    compiled = compile(_memory(deletes=True), "gated-deltanet")
    for ids in (
        np.array(list(product([0, 3, 4, 6], repeat=5))),
        np.random.default_rng(0).integers(0, 7, (3, 200)),
    ):
        scores = run_blocks(compiled, ids)[-1] @ compiled.head.toarray().T
        for word, said in zip(ids.tolist(), scores, strict=True):
            held: dict[int, int] = {}
            for before, now, row in zip([None, *word], word, said, strict=False):
                if before in (0, 1, 2) and now == 6:
                    held.pop(before, None)
                if before in (0, 1, 2) and 3 <= now <= 5:
                    held[before] = now
                expected = np.zeros(7)
                if now <= 2 and now in held:
                    expected[held[now]] = 1
                assert np.array_equal(row[:7], expected)


def test_the_largest_value_that_compiles_is_proved(tmp_path) -> None:
    wide = latch(token.lookup({0: 1, 1: (1 << 24) // 130, 2: 0}), is_b)
    verdict = check(write(tmp_path / "at", over_abc("wide", wide), "gated-deltanet"))
    assert verdict.weights is None, verdict.lines()


def test_last_write_recall_and_parity_are_answered(tmp_path) -> None:
    recall = CONSTRUCTIONS["mqar"](kappa=4, vocab=16, write="last")
    parity = Automaton(table=table_json(NAMED["parity"].make()), arch="gated-deltanet")
    for name, construction, target in (("recall", recall, "gated-deltanet-qwen"), ("parity", parity, "gated-deltanet")):
        directory = write(tmp_path / name, construction.circuit(), target, task=construction.asks())
        verdict = prove(*contents(directory))
        assert verdict.accepted and verdict.task is None, verdict.lines()


@pytest.mark.parametrize("name", ["parity", "resets", "memory"])
def test_no_changed_weight_is_proved_that_changes_a_score(tmp_path, name) -> None:
    tried = len(some(range(24), 0.04))
    right, *others = changed(checkpoint(tmp_path / "at", name), tried, seed=len(name))
    assert right.accepted
    differ = [change for change in others if not torch.equal(change.letters, right.letters)]
    assert len(differ) > (4 if tried == 24 else 0) and [change.said for change in differ if change.accepted] == []
    assert all(change.others < change.letters.max() for change in others if change.accepted)


def _world(letters: int = 4, length: int | None = 100) -> World:
    edge = {"from": "s", "to": "s", "tokens": [[0, letters - 2]], "distinct": False}
    language = {"tokens": letters, "start": "s", "edges": [edge]}
    return World(parse({"language": language, "length": length}), FORMATS["float32"])


def _flag(*letters: int):
    return of_letters(np.isin(np.arange(4), letters).astype(float))


def test_config_entries_with_which_the_library_opens_no_model_are_rejected(tmp_path) -> None:
    directory = write(tmp_path / "at", _memory(), "gated-deltanet-qwen")
    config = json.loads((directory / "config.json").read_text())
    rope = {"partial_rotary_factor": 0.25, "rope_theta": 10000.0, "rope_type": "default"}
    asked = lambda **entries: check_config(config | entries, "float32")
    asked(initializer_range=0.02, rope_parameters=rope)  # as transformers writes them
    with pytest.raises(Rejected, match=r"initializer_range = 5.0, expected 0.02"):
        asked(initializer_range=5.0)
    with pytest.raises(Rejected, match="rope_parameters"):
        asked(rope_parameters=rope | {"rope_type": "nonsense"})
    asked(pad_token_id=None)
    for pad in (config["vocab_size"], -1, [1]):
        with pytest.raises(Rejected, match=r"pad_token_id (is .* the embedding has no row for|= \[1\], expected)"):
            asked(pad_token_id=pad)


@pytest.mark.parametrize("entry", ["rope_parameters", "pad_token_id", "linear_allow_neg_eigval", "layer_types"])
def test_an_entry_that_the_library_would_fill_in_is_not_left_out(tmp_path, entry) -> None:
    directory = write(tmp_path / "at", _swaps(*SWAPPED["parity"]), "gated-deltanet")
    config = json.loads((directory / "config.json").read_text())
    check_config(config, "float32")
    with pytest.raises(Rejected, match=entry):
        check_config({key: value for key, value in config.items() if key != entry}, "float32")


@pytest.mark.parametrize("target", ["gated-deltanet", "gated-deltanet-qwen"])
def test_a_norm_of_zeros_needs_an_epsilon_that_no_backend_reads_as_0(tmp_path, target) -> None:
    """Heads that hold nothing yet, and the silent layer of attention, divide 0 by the root of ε."""
    directory = write(tmp_path / "at", _memory(), target)
    config = json.loads((directory / "config.json").read_text())
    for epsilon, exact in ((2.0**-126, True), (1e-46, False)):
        (directory / "config.json").write_text(json.dumps(config | {"rms_norm_eps": epsilon}))
        model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
        assert bool(model(torch.tensor([[0, 3, 0]])).logits.isfinite().all()) == exact
        assert (check(directory).weights is None) == exact
    with pytest.raises(Rejected, match=r"rms_norm_eps = 5\.87.*e-39, expected a number from 2\^-126 on, below 1"):
        check_config(config | {"rms_norm_eps": 2.0**-127}, "float32")


def test_flags_that_are_1_at_once() -> None:
    world = _world()
    here, before = _flag(0), later(world, _flag(0), 1)
    assert on_together(world, [here, _flag(1), _flag(3)], "x") == {frozenset(s) for s in ((), (0,), (1,))}
    assert on_together(world, [here, before], "x") == {frozenset(s) for s in ((), (0,), (1,), (0, 1))}
    assert exclusive(world, [here, _flag(1)], "x") and not exclusive(world, [here, before], "x")
    assert not exclusive(world, [_flag(0, 1), _flag(1)], "x")
    with pytest.raises(Rejected, match="not 0 or 1"):
        on_together(world, [combine([(Fraction(2), here)])], "x")


def test_the_start_counts() -> None:
    """1 − [a letter stood one back] is 1 at the first position alone."""
    world = _world()
    first = combine([(Fraction(-1), later(world, constant(1), 1))], Fraction(1))
    assert on_together(world, [first], "x") == {frozenset(), frozenset({0})}


def test_states_are_numbered_by_what_moves_them() -> None:
    world = _world()
    swap = lambda state, on: state ^ (0 in on)
    root, states = machine(world, [_flag(0), _flag(1)], 0, swap, "x")
    assert states == [0, 1] and machine(world, [_flag(0)], 0, swap, "x")[0] is root
    assert machine(world, [_flag(1)], 0, swap, "x")[0] is not root
    with pytest.raises(Rejected, match="more than 1024 states"):
        machine(world, [_flag(0)], 0, lambda state, on: state + len(on), "x")


@pytest.mark.parametrize("name", ["s3", "modulo-3", "tomita-3", "ends-with-abb"])
def test_cascades_of_columns_and_resets_are_proved(tmp_path, name) -> None:
    """The second column's swap is seen through the first, and its places turn the sign."""
    construction = Automaton(table=table_json(NAMED[name].make()), arch="gated-deltanet")
    directory = write(tmp_path / "at", construction.circuit(), "gated-deltanet", task=construction.asks())
    verdict = prove(*contents(directory))
    assert verdict.accepted and verdict.task is None, verdict.lines()
    checkpoint, circuit, claim = contents(directory)
    claim["classes"] = {q: "yes" if c == "no" else "no" for q, c in claim["classes"].items()}
    assert prove(checkpoint, circuit, claim).task is not None
