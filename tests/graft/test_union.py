"""Several circuits in one: exact, verified and proved, and each answers by plain Python what it did alone."""

from itertools import islice, product

import numpy as np
import pytest
import torch

from compiler import (
    Alphabet,
    Circuit,
    InputLanguage,
    Tokens,
    bare,
    compile,
    emit,
    load,
    readout_integer,
    readout_one_hot,
)
from compiler.graft import union
from constructions.checkpoints.saved import verify_checkpoint
from constructions.registry import CONSTRUCTIONS
from tests.graft.hosts import count_answers, counter, induction, induction_answers
from verify.checker.check import check


def sequences(circuit: Circuit, count: int, length: int) -> tuple[np.ndarray, list[list[str]]]:
    ids = circuit.token_language.sample(count, length, seed=3)
    return ids, [[circuit.token_alphabet.tokens[i] for i in row] for row in ids]


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_two_circuits_in_one_checkpoint_are_verified_and_proved(target, tmp_path):
    both = union(induction("abcd"), counter())
    compile(both, target).save(tmp_path / "both")
    found = verify_checkpoint(tmp_path / "both", samples=50)
    assert found.good and all(result.bit_exact for result in found.results.values())
    assert check(tmp_path / "both").accepted

    stack = load(tmp_path / "both")
    ids, words = sequences(both, 20, 50)
    with torch.no_grad():
        best = stack(torch.from_numpy(ids)).argmax(-1).numpy()
    asked = 0
    for row, told in zip(best, words, strict=True):
        pairs = zip(induction_answers(told, "abcd"), count_answers(told), row, strict=True)
        for first, second, found_id in pairs:
            expected = first or second
            if expected is not None:
                asked += 1
                assert both.token_alphabet.tokens[found_id] == expected
    assert asked > 500


def test_scores_of_different_scale_fit_into_one_head(tmp_path):
    """MQAR's scores are multiples of 8,192 up to 10^7, those of induction heads whole numbers up to 8."""
    recall = CONSTRUCTIONS["mqar"](kappa=4, vocab=8)
    both = union(recall.circuit(), CONSTRUCTIONS["induction-heads"](vocab=6).circuit())
    compile(both).save(tmp_path / "both")
    assert check(tmp_path / "both").accepted
    stack, place = load(tmp_path / "both"), both.token_alphabet.index
    for batch in islice(recall.tasks()[0].adversarial(), 3):
        names = recall.circuit().token_alphabet.tokens
        ids = np.vectorize(lambda i, names=names: place(names[i]))(batch.tokens)
        with torch.no_grad():
            best = stack(torch.from_numpy(ids)).argmax(-1).numpy()
        asked = batch.labels >= 0
        wanted = np.vectorize(lambda i, names=names: place(names[i]))(np.where(asked, batch.labels, 0))
        assert asked.any() and (best == wanted)[asked].all()


def test_equal_circuits_share_every_lane():
    alone, twice = compile(induction()), compile(union(induction(), induction(name="again")))
    assert twice.lanes.count == alone.lanes.count and len(twice.blocks) == len(alone.blocks)


def test_a_shared_letter_is_read_by_both():
    first, second = induction("ab", "one"), induction("bc", "two")
    both = union(first, second)
    assert both.token_alphabet.tokens == ("a", "b", "c")
    scores = compile(both).interpret(np.array([[0, 1, 0, 1, 2, 1]]))[0]
    bonus = scores[0][0]  # a is read by "one" alone, and nothing follows it yet
    assert scores[3].tolist() == [1, 0, 0]  # b is read by both: "one" says a, "two" nothing yet
    assert scores[4].tolist() == [0, bonus, bonus]  # c is read by "two" alone
    assert scores[5].tolist() == [0, 0, 1]  # what followed b last is no letter of "one"


def _lock() -> Circuit:
    """`open` at a 3 right after a 1; it scores every letter, by constants too."""
    alphabet = Alphabet.of("1", "3", "x", "open", "shut")
    x = Tokens(alphabet)
    opened = x.is_in("3") & x.is_in("1").shift(1)
    language = InputLanguage.of(alphabet, "s", [("s", "s", ("1", "3", "x"))], 20, "keys")
    return Circuit("lock", emit(alphabet, (opened, "open"), otherwise="shut"), language)


def _bank() -> Circuit:
    """How many deposits were made, modulo 4, by what it remembers."""
    alphabet = Alphabet.of("d", *(str(i) for i in range(4)))
    deposits = Tokens(alphabet).is_in("d").cumsum() % 4
    language = InputLanguage.of(alphabet, "s", [("s", "s", ("d",))], 20, "deposits")
    return Circuit("bank", readout_integer(deposits, alphabet, {str(i): i for i in range(4)}), language)


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_who_does_not_read_a_token_says_nothing_of_shared_letters(target):
    """1 and 3 are letters of both; d is the bank's alone, x the lock's."""
    both = union(_lock(), _bank())
    place = both.token_alphabet.index
    words = list(product("1xd", repeat=5))
    with torch.no_grad():
        scores = bare(compile(both, target))(torch.tensor([[place(token) for token in word] for word in words]))
    best = scores.argmax(-1).tolist()
    for word, found in zip(words, best, strict=True):
        for t, token in enumerate(word):
            if token == "d":
                assert found[t] == place(str(word[: t + 1].count("d") % 4))
            if token == "x":
                assert found[t] == place("shut")


def test_a_memory_that_is_asked_nothing_needs_no_block_to_be_silent():
    """v0 to v3 are letters of both, and the induction heads ask their memory nothing at a key of MQAR."""
    circuits = [CONSTRUCTIONS["mqar"](kappa=2, vocab=4).circuit(), CONSTRUCTIONS["induction-heads"](vocab=4).circuit()]
    assert len(compile(union(*circuits)).blocks) == 2


def test_after_the_guest_letters_are_far_below_and_silent_ones_at_zero():
    loud = compile(union(induction("ab"), guest="other"))
    tokens = np.array([[0, 1, 2, 0, 2, 1]])
    scores = loud.interpret(tokens)[0]
    assert (scores[2][:2] <= -1).all() and scores[2][2] == 0 and (scores[0][:2] >= 1).all()
    quiet = compile(union(induction("ab"), guest="other", silent=["a"]))
    assert quiet.interpret(tokens)[0][4].tolist()[0] == 0 and quiet.interpret(tokens)[0][4][1] <= -1


def test_the_product_of_languages_interleaves_and_keeps_each_part_in_its_own():
    letters = Alphabet.of("k", "q")
    once = InputLanguage.of(letters, "start", [("start", "asked", ["k"]), ("asked", "asked", ["q"])], 9, "one k")
    ordered = Circuit("ordered", readout_one_hot(Tokens(letters).one_hot(), letters), once)
    language = union(ordered, counter()).token_language
    place = language.alphabet.index
    for text, inside in (("k q", True), ("0 k = q 1", True), ("q k", False), ("k 1 k", False)):
        assert language.accepts([place(word) for word in text.split()]) is inside


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: union(), "at least one is needed"),
        (lambda: union(induction("ab"), guest="a"), "a letter of a circuit"),
        (lambda: union(ending("a"), ending("b")), "end a generation with 'a' and 'b'"),
        (lambda: union("induction"), "a Circuit"),
    ],
)
def test_what_cannot_be_one_circuit_is_refused(build, words):
    with pytest.raises((ValueError, TypeError), match=words):
        build()


def ending(letter: str) -> Circuit:
    circuit = induction("ab")
    return Circuit(circuit.name, circuit.output, circuit.language, end=letter)
