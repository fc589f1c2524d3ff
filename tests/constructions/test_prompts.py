"""The prompts of a promise's language are the solver's prompts, and what is none of them is refused with what is
missing.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compiler.artifact.generate import Writer
from compiler.artifact.prompts import complaint
from compiler.language.alphabet import Alphabet
from compiler.language.input_language import InputLanguage
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.knapsack import Knapsack
from constructions.copy_dp.lists import LongestIncreasingSubsequence, MaximumSubarray
from constructions.copy_dp.local import CoinChange, Fibonacci
from constructions.copy_dp.phonebook import Phonebook
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.copy_dp.tables import MatrixChain, ShortestPath
from constructions.copy_dp.viterbi import Viterbi
from constructions.copy_dp.words import EditDistance, LongestCommonSubsequence
from constructions.registry import CONSTRUCTIONS
from constructions.token_selection.copy_ngram import CopyNgram
from verify.tasks.chain import ChainTask

EXACT = [
    Copy(n=3, vocab=2),
    EditDistance(length=2, distinct_letters=2),
    LongestCommonSubsequence(length=2, distinct_letters=2),
    LongestIncreasingSubsequence(length=3, values=2),
    MaximumSubarray(length=3, values=3),
    Knapsack(items=2, capacity=1, values=2),
    Fibonacci(modulus=3, length=4),
    CoinChange(amount=4, coins="1,3"),
    Viterbi(length=3),
    ShortestPath(nodes=3, lengths=2),
    MatrixChain(matrices=2, largest=2),
    Phonebook(names=1, entries=1, digits=1),
]


def prompts_of(language: InputLanguage, most: int) -> set[tuple[str, ...]]:
    """What the edges spell from the start to the asked state, once through each letter, by walking them all."""

    def spelled(state: str, word: tuple[int, ...], used: frozenset) -> Iterator[tuple[int, ...]]:
        if state == language.asked:
            yield word
        elif len(word) < most:
            for edge in (e for e in language.edges if e.source == state):
                for token in edge.tokens:
                    if not (edge.distinct and (edge, token) in used):
                        yield from spelled(edge.target, (*word, token), used | {(edge, token)})

    names = language.alphabet.tokens
    return {tuple(names[t] for t in word) for word in spelled(language.start, (), frozenset())}


def every_chain() -> list[str]:
    return [name for name, c in CONSTRUCTIONS.items() if isinstance(c().tasks()[0], ChainTask)]


@pytest.mark.parametrize("construction", EXACT, ids=lambda c: c.name)
def test_the_language_asks_what_the_solver_answers(construction) -> None:
    task = construction.tasks()[0]
    prompts = set(task.solver.prompts())
    assert prompts_of(task.language, max(map(len, prompts)) + 1) == prompts


@pytest.mark.parametrize("construction", EXACT, ids=lambda c: c.name)
def test_a_beginning_is_refused_and_what_would_do_is_a_prompt(construction) -> None:
    task = construction.tasks()[0]
    prompts, ids = set(task.solver.prompts()), task.language.alphabet.index
    for prompt in sorted(prompts)[:: max(1, len(prompts) // 40)]:
        word = [ids(name) for name in prompt]
        assert complaint(task.language, word) is None
        for i in range(len(word)):
            said = complaint(task.language, word[:i])
            assert said is not None, prompt[:i]
            would_do = said.rpartition("; ")[2] if prompt[-1] != ";" else said.partition("must come; ")[2]
            assert tuple(would_do.removesuffix(" would do").strip("'").split()) in prompts, said


@pytest.mark.parametrize("name", every_chain())
def test_every_construction_that_writes_says_where_its_prompts_end(name: str) -> None:
    """And no beginning of a prompt that its task draws is answered."""
    task = CONSTRUCTIONS[name]().tasks()[0]
    assert task.language.asked
    for prompt, chain in task.cases(8, seed=0):
        assert complaint(task.language, prompt) is None and complaint(task.language, prompt + chain) is None
        assert all(complaint(task.language, prompt[:i]) for i in range(len(prompt)))


def test_the_two_that_count_what_states_do_not_are_listed() -> None:
    """Noise and short numbers may take room that the promise's length ends: their language holds more prompts."""
    beside = {SelectiveCopy.name, CopyNgram.name}
    assert set(every_chain()) == {c.name for c in EXACT} | beside
    for construction in (SelectiveCopy(n=2, vocab=1, length=3), CopyNgram(n=1, vocab=2, length=2)):
        task = construction.tasks()[0]
        assert set(task.solver.prompts()) <= prompts_of(task.language, 6)


@pytest.mark.parametrize(
    "prompt, said",
    [
        ("3 4 | 2 | 2 ;", "after '3 4 | 2' one of '0' '1' '2' … '5' must come, not '|'; '3 4 | 2 0 | 0 ;' would do"),
        ("3 4 | 2 1 | 2", "after '3 4 | 2 1 | 2' ';' must come; '3 4 | 2 1 | 2 ;' would do"),
        ("; 3", "at its beginning one of '|' '0' '1' … '6' must come, not ';'; '| | 0 ;' would do"),
        ("3 4 | 2 1 | 2 ; .", "after '3 4 | 2 1 | 2 ;' one of '0' '1' '2' … '15' must come, not '.'"),
    ],
)
def test_a_knapsack_with_fewer_values_than_weights_is_refused(prompt: str, said: str, tmp_path) -> None:
    artifact.save(build(Knapsack()), {}, tmp_path / "knapsack")
    with pytest.raises(ValueError) as refused:
        Writer(tmp_path / "knapsack").write([prompt])
    assert said in str(refused.value) and "as many values" in str(refused.value)


@pytest.mark.parametrize(
    "prompt, said",
    [
        ("4 ; 2", "behind '4 ;' the prompt goes on with '2', where the model writes '0'"),
        ("4 ; 0 1 2 2", "goes on with '2', where the model writes '1'"),
    ],
)
def test_a_chain_that_was_begun_otherwise_is_refused(prompt: str, said: str, tmp_path) -> None:
    """The language holds every number there; the model writes one."""
    artifact.save(build(CoinChange(amount=4, coins="1,3")), {}, tmp_path / "c")
    writer = Writer(tmp_path / "c")
    assert writer.write(["4 ; 0 1 2"])[0].text == "1 2 ."
    with pytest.raises(ValueError, match=said):
        writer.write([prompt])


def test_a_prompt_may_go_on_behind_the_end_as_the_model_does(tmp_path) -> None:
    """The language has the end again behind the end, and so does the model: it was said to write nothing more."""
    artifact.save(build(Copy(n=3, vocab=2)), {}, tmp_path / "copy")
    writer = Writer(tmp_path / "copy")
    assert [writer.write([prompt], 1)[0].text for prompt in ("x0 | x0 .", "x0 | x0 . .")] == [".", "."]


def test_a_language_that_says_nothing_of_prompts_takes_every_beginning() -> None:
    letters = Alphabet.of("a", "b")
    language = InputLanguage.of(letters, "start", [("start", "end", ["a"]), ("end", "end", ["b"])], 9, "a, then b")
    assert complaint(language, [0]) is None and complaint(language, [0, 1]) is None
    assert complaint(language, [0, 0]) == "after 'a' 'b' must come, not 'a'"
    assert complaint(language, [1]) == "at its beginning 'a' must come, not 'b'"


def test_a_state_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="asked is 'chain', and no edge"):
        InputLanguage.of(Alphabet.of("a"), "start", [("start", "start", ["a"])], 3, "a", "chain")
