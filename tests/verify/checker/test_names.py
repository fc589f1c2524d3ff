"""A proof is about the text: letters that change names, and an end that is moved, in every construction with a task."""

from __future__ import annotations

import json
from functools import cache
from itertools import combinations, islice
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from compiler.interpreter import interpret
from compiler.language.circuit import Circuit
from compiler.language.data import language_to_data, to_data
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.checkpoints.guarantee import proof_of
from constructions.registry import CONSTRUCTIONS
from tests.verify.checker.evidence import SMALL
from verify.checker.check import check
from verify.checker.formats import Rejected
from verify.checker.tasks.names import Names
from verify.checker.tasks.task import prove_task, read_task
from verify.checker.values.language import parse
from verify.tasks.task import IGNORED, Batch

SIZES = SMALL | {"mqar": [{"kappa": 2, "vocab": 3, "write": w} for w in ("sum", "first", "last")]}
SIZES |= {"phonebook": [{"names": 2, "entries": 1, "digits": 1}]}  # each swap of two letters is a proof
SIZES |= {name: [{"length": 2, "distinct_letters": 2}] for name in ("edit-distance", "lcs")}
ASKED = [
    CONSTRUCTIONS[name](**params)
    for name, sizes in SIZES.items()
    for params in sizes
    if CONSTRUCTIONS[name](**params).asks() is not None
]
IDS = [f"{c.name}-{i}" for i, c in enumerate(ASKED)]
ROWS, LONGEST = 100, 64
UNALIKE = ("absolute-time", "count-in-row", "fibonacci", "coin-change", "shortest-path")  # every name is a number
UNALIKE += ("token-selection",)  # whose items have names that are made of others
ANY_LETTER = ("keep-nth", "recall", "unique-induction")  # say again what they read, whatever it is called


@cache
def _circuit(i: int) -> Circuit:
    return ASKED[i].circuit()


@cache
def _data(i: int) -> tuple[dict, object]:
    circuit = _circuit(i)
    return json.loads(json.dumps(to_data(circuit))), parse(language_to_data(circuit.language))


@cache
def _texts(i: int) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Sequences with their right answers, as ids of the letters before any change of names."""
    found = []
    for task in ASKED[i].tasks():
        batches = [*islice(task.random(ROWS, seed=0), 1), *islice(task.adversarial(), 6)]
        found += [(batch.tokens[:ROWS, :LONGEST], _asked(i, batch)) for batch in batches]
    return tuple(found)


def _asked(i: int, batch: Batch) -> np.ndarray:
    """The labels; where most answers are promised, those that the task asks for."""
    labels = batch.labels[:ROWS, :LONGEST].copy()
    if ASKED[i].promise() == "random":
        task = read_task(ASKED[i].asks(), _data(i)[0]["alphabet"]).task
        labels[[[a is None for a in task.answers(row)] for row in batch.tokens[:ROWS, :LONGEST].tolist()]] = IGNORED
    return labels


def _right(i: int, dealt: np.ndarray) -> bool:
    """Whether the text is right where the letter `a` bears the name that `dealt[a]` had; dealt is its own inverse."""
    circuit = _circuit(i)
    for tokens, labels in _texts(i):
        read = dealt[tokens]
        inside = [circuit.language.accepts(row) for row in read.tolist()]
        if any(inside):
            written = dealt[interpret(circuit, read[inside])[circuit.output].argmax(axis=-1)]
            wanted = labels[inside]
            if (written != wanted)[wanted != IGNORED].any():
                return False
    return True


@pytest.mark.parametrize("i", range(len(ASKED)), ids=IDS)
def test_letters_that_change_names_are_accepted_only_where_the_text_stays_right(i):
    circuit, language = _data(i)
    letters, claim = circuit["alphabet"], ASKED[i].asks()
    assert prove_task(language, circuit, claim).reason is None
    accepted, wrong = 0, 0
    for a, b in combinations(range(len(letters)), 2):
        dealt = np.arange(len(letters))
        dealt[[a, b]] = b, a
        right = _right(i, dealt)
        wrong += not right
        if right and accepted:  # another one that may be proved shows nothing new; those that are wrong must not be
            continue
        if prove_task(language, circuit | {"alphabet": [letters[k] for k in dealt]}, claim).reason is None:
            accepted += 1
            assert right, (letters[a], letters[b])
    assert accepted or ASKED[i].name in UNALIKE or ASKED[i].params().get("form") == "place"
    assert wrong or ASKED[i].name in ANY_LETTER


@pytest.mark.parametrize("i", range(len(ASKED)), ids=IDS)
def test_an_end_that_is_moved_is_rejected(i):
    circuit, language = _data(i)
    ends = {None, *circuit["alphabet"]} - {circuit["end"]}
    for end in ends:
        assert "ends a text with" in prove_task(language, circuit | {"end": end}, ASKED[i].asks()).reason, end


@pytest.mark.parametrize("name, i, j", [("fibonacci", "1", "2"), ("copy", "x0", "|")])
def test_a_checkpoint_whose_files_all_tell_the_same_other_names_is_rejected(name, i, j, tmp_path):
    """The names in circuit.json and in the tokenizer agree, and every hash would: what is wrong is the text."""
    built = build(CONSTRUCTIONS[name](**SMALL[name][0]))
    artifact.save(built, {}, tmp_path / "c", None, proof_of(built))
    assert check(tmp_path / "c").accepted
    for file in ("circuit.json", "tokenizer.json"):
        text = (tmp_path / "c" / file).read_text("utf-8")
        swapped = (
            text.replace(json.dumps(i), '"\0"').replace(json.dumps(j), json.dumps(i)).replace('"\0"', json.dumps(j))
        )
        (tmp_path / "c" / file).write_text(swapped, "utf-8")
    vocab = json.loads((tmp_path / "c" / "tokenizer.json").read_text("utf-8"))
    vocab["model"]["vocab"] = {word: k for k, word in enumerate(vocab["model"]["vocab"])}
    (tmp_path / "c" / "tokenizer.json").write_text(json.dumps(vocab), "utf-8")
    verdict = check(tmp_path / "c")
    assert verdict.task and not verdict.accepted


@pytest.mark.parametrize(
    "letters, said",
    [
        ("k0 k0 v0", "one name"),
        ("k0 k2 v0", "left out"),
        ("_ v0", "none"),
        ("k1 v0", "needs letters k0"),
    ],
)
def test_names_that_leave_a_letter_open_are_rejected(letters, said):
    with pytest.raises(Rejected, match=said):
        Names(letters.split()).numbered("k")


def test_a_claim_tells_nothing_that_nobody_reads():
    circuit, language = _data(0)
    assert "'keys'" in prove_task(language, circuit, ASKED[0].asks() | {"keys": [1, 2]}).reason
    assert "letters" in prove_task(language, circuit | {"alphabet": ["a"]}, ASKED[0].asks()).reason


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of a small checkpoint of a construction, which is accepted."""

    @cache
    def folder(name: str) -> Path:
        built, directory = build(CONSTRUCTIONS[name](**SIZES[name][0])), tmp_path_factory.mktemp("saved") / name
        artifact.save(built, {}, directory, None, proof_of(built))
        assert check(directory).accepted
        return directory

    return folder


def _rename(directory: Path, named: dict[str, str]) -> None:
    """In circuit.json and the tokenizer's files, each string that is one of these names."""

    def changed(value):
        if isinstance(value, dict):
            return {named.get(key, key): changed(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [changed(inner) for inner in value]
        return named.get(value, value) if isinstance(value, str) else value

    for file in ("circuit.json", "tokenizer.json", "tokenizer_config.json"):
        path = directory / file
        path.write_text(json.dumps(changed(json.loads(path.read_text("utf-8"))), ensure_ascii=False), "utf-8")


@pytest.mark.parametrize(
    "name, named, said",
    [
        ("selective-copy", {"<pad>": "0 x"}, "special token"),  # matched before the text is split into words
        ("mqar", {"<eos>": " "}, "special token"),
        ("copy", {"<pad>": " x1"}, "special token"),
        ("mqar", {"_": "<pad>", "<pad>": "_"}, "special token"),
        ("mqar", {"_": "k0 "}, "no word"),
        ("mqar", {"_": "\u200b"}, "cannot be seen"),
        ("edit-distance", {"2": "zz"}, "has no place for it"),
        ("edit-distance", {"2": "2\u200b"}, "cannot be seen"),
        ("fibonacci", {"8": "8'"}, "has no place for it"),
        ("copy", {"x1": "X1"}, "has no place for it"),
        ("selective-copy", {"_": "-"}, "'_'"),
        ("phonebook", {";": ","}, "';'"),
    ],
)
def test_names_that_would_mislead_are_rejected(name, named, said, saved, tmp_path):
    """As an attacker wrote them: the checkpoint's files agree with one another."""
    copytree(saved(name), tmp_path / "c")
    _rename(tmp_path / "c", named)
    assert said in check(tmp_path / "c").reason


def test_letters_that_look_like_others_are_told_apart_in_the_verdict():
    assert Names(["a", "\u0430"]).shown([0, 1]) == "`a \u0430(U+0430)`"
