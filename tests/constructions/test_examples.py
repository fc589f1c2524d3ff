"""The example of every model card asks something, and the answer beside it is the task's and the model's."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import compiler
from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile
from compiler.artifact.artifact import Artifact
from compiler.artifact.generate import Writer
from compiler.artifact.load import load
from constructions.checkpoints import artifact
from constructions.checkpoints.built import Built, build
from constructions.copy_dp.own_problem import OwnProblem
from constructions.copy_dp.problem import DPProblem
from constructions.registry import families
from constructions.selectivity.mqar import MQAR
from verify.tasks.example import example_of
from verify.tasks.selection import Recall

TOKENS = re.compile(r'ids = names\((?P<prompt>.+), return_tensors="pt"\).*\n.*argmax\(\)\)  # (?P<first>.+)\n```')
NUMBERS = re.compile(r"model\.run\((?P<inputs>\{.*\})\)  #")
ONES = DPProblem(
    name="ones",
    letters="ab",
    inputs=(3,),
    cells=[(i,) for i in range(3)],
    reads=lambda i: [(0, i)],
    needs=lambda i: [(i - 1,)],
    transition=lambda cell, letters, values: values[0] + letters[0],
    plain=lambda cell, letters, values: values[0] + letters[0],
    largest=3,
)


def cases():
    alternates = (
        '{"start": "x", "accept": ["x"], "transitions": {"x": {"a": "y", "b": "z"}, "y": {"a": "z", "b": "x"}, '
    )
    alternates += '"z": {"a": "z", "b": "z"}}}'
    given = {"polynomial": {"expression": "2*x1*x2"}, "automaton": {"table": alternates}}
    made = [c(**given.get(name, {})) for name, c in families().items()]
    return [*made, OwnProblem(given=ONES), MQAR(kappa=4, vocab=8, guarantee="random", arch="mamba2")]


def saved(construction, directory: Path) -> tuple[Built, str]:
    built = build(construction)
    if built.model is None:
        pytest.skip("there is no checkpoint of this mixer")
    artifact.save(built, {}, directory)
    return built, (directory / "README.md").read_text()


@pytest.mark.parametrize("construction", cases(), ids=lambda c: f"{c.title()}-{c.promise()}")
def test_the_card_asks_and_answers(construction, tmp_path: Path) -> None:
    built, card = saved(construction, tmp_path / "saved")
    if built.over_numbers:
        inputs = eval(NUMBERS.search(card)["inputs"], {"np": np})  # what a reader would paste
        outputs = compiler.load(tmp_path / "saved").run(inputs)[0, -1]
        said = re.search(r"Right at the last position: (.*)\.\n", card)[1]
        listed = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", said)]
        told = outputs if said.startswith("[") else [outputs.argmax(), outputs.max()]
        assert np.allclose(listed, told, rtol=1e-4, atol=1e-4), said
        return
    found = TOKENS.search(card)
    prompt, first = eval(found["prompt"]), eval(found["first"])
    ids = [built.compiled.source.alphabet.index(word) for word in prompt.split()]
    assert built.compiled.source.token_language.accepts(ids)
    if built.compiled.source.end is not None:
        answer = re.search(r"The right continuation is `(.*)`:", card)[1]
        assert Writer(tmp_path / "saved").write([prompt])[0].text == answer and answer.startswith(first)
        return
    import torch

    scores = load(tmp_path / "saved")(torch.tensor([ids]))[0, -1, : built.compiled.source.alphabet.size]
    answer = re.search(r"The right answer is `(.*)`\.", card)[1]
    assert built.compiled.source.alphabet.tokens[int(scores.argmax())] == answer == first


def test_examples_are_what_the_task_asks_not_what_comes_first() -> None:
    """Of a task that asks at the last of its positions only, the example ends there."""
    task = Recall(keys=3, values=3, pairs=2)
    example = example_of(task, lambda _: True)
    assert len(example.prompt) in (3, 5) and example.answer == (task.answer(example.prompt),)
    assert example_of(task, lambda _: False) is None


def test_without_a_task_the_example_is_a_whole_prompt_where_the_language_knows_them() -> None:
    letters = Alphabet.of("a", "b", ";", "x")
    edges = [("start", "start", ["a", "b"]), ("start", "chain", [";"]), ("chain", "end", ["x"])]
    language = InputLanguage.of(letters, "start", edges, 8, "a and b, then ;", "chain")
    circuit = Circuit("ends", Tokens(letters).one_hot(["a", "b", ";", "x"], name="letter"), language, end="x")
    example, answer = Artifact.of(compile(circuit)).example
    assert example.endswith(";") and answer is None


def test_the_author_s_own_answers_are_shown() -> None:
    letters = Alphabet.of("a", "b")
    scores = Tokens(letters).one_hot(["a", "b"], name="letter")
    echo = Circuit("echo", scores, InputLanguage.everything(letters, 8))
    assert Artifact.of(compile(echo)).example[1] is None
    example, answer = Artifact.of(compile(echo), task=lambda tokens: tokens[-1]).example
    assert answer == example.split()[-1] and set(example.split()) <= {"a", "b"}
