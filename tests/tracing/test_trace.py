"""What a trace shows is what plain Python computes, and it is read from the tensors of the real modules."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import tracing
from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, count, load, readout_integer, readout_one_hot
from compiler.artifact.errors import CheckpointError
from compiler.artifact.generate import transformers_model
from compiler.tracing.hooks import hooks
from compiler.tracing.intervention import NotCarried
from compiler.tracing.variables import NoVariable
from constructions.checkpoints.saved import verify_checkpoint
from constructions.scoring.sites import Site, read_all
from constructions.zoo.collection import entries
from examples.gallery import bracket_depth
from examples.programs import two_brackets
from tests.artifact.test_compare import reseal
from tests.tracing.models import MIXERS, NAMED, brackets, case, depth, truth_of


def stacks(word: list[str]) -> list[list[str]]:
    """The open brackets behind every letter."""
    found, stack = [], []
    for letter in word:
        stack = [*stack, letter] if letter in "([" else stack[:-1]
        found.append(stack)
    return found


def words(language, longest: int) -> list[list[int]]:
    return [list(word) for n in range(1, longest + 1) for word in language.strings(n)]


@pytest.mark.parametrize("mixer", MIXERS)
def test_a_trace_is_what_a_stack_in_plain_python_holds(mixer: str) -> None:
    truth = brackets(mixer)
    language = truth.compiled.source.token_language
    for ids in words(language, 4):
        trace = truth.trace(np.array(ids), {})
        open_ = stacks(trace.tokens)
        assert trace["stack"] == [stack[-1] if stack else None for stack in open_]
        assert trace["is_(|[ - is_)|].cumsum()"] == [len(stack) for stack in open_]
        assert trace["is_(|["] == [letter in "([" for letter in trace.tokens]
        assert trace["output"] == two_brackets.answers(trace.tokens)
        assert trace.agrees and not trace.outside


@pytest.mark.parametrize("mixer", MIXERS)
def test_every_readable_variable_of_the_gallery_is_the_interpreters(mixer: str) -> None:
    truth = depth(mixer)
    for ids in words(truth.compiled.source.token_language, 4):
        trace = truth.trace(np.array(ids), {})
        level = np.cumsum([1 if token == "(" else -1 for token in trace.tokens])
        assert trace["depth"] == level.tolist()
        assert trace["output"][-1] == bracket_depth.plain_python(trace.tokens)
        assert trace.agrees


def test_values_come_from_the_weights_of_the_model() -> None:
    truth = brackets("mamba")
    before = truth.trace(truth.ids("( ["), {})
    weight = truth.stack.embedding.weight
    lane = truth.compiled.lanes.names.index("(|[[0]")
    kept = weight[0, lane].item()
    with torch.no_grad():
        weight[0, lane] = 0.0  # the letter ( no longer says that it is one
    try:
        after = truth.trace(truth.ids("( ["), {})
    finally:
        with torch.no_grad():
            weight[0, lane] = kept
    assert before["stack"] == ["(", "["] and after["stack"] == [None, "["]
    assert before.agrees and not after.agrees
    assert "'(|[' at position 0: number 0 is 0 in the model and 1 in the circuit" in after.differences


def test_a_codeword_is_read_although_one_number_of_it_has_no_lane() -> None:
    for mixer in MIXERS:
        truth = case("mqar_once", mixer)
        memory = next(v for v in truth.variables if v.name == "memory")
        assert memory.reading is not None and not memory.reading.whole
        for word in truth.compiled.source.token_language.sample(20, 8, 0):
            trace = truth.trace(word, {})
            stored: dict[str, str] = {}
            expected = []
            for before, now in zip([None, *trace.tokens], trace.tokens):
                if now.startswith("v") and before is not None and before.startswith("k"):
                    stored[before] = now
                expected.append(stored.get(now))
            asked = [i for i, token in enumerate(trace.tokens) if token.startswith("k")]
            assert [trace["memory"][i] for i in asked] == [expected[i] for i in asked]


@pytest.mark.parametrize("mixer", MIXERS)
def test_states_are_those_of_the_modules_own_step(mixer: str) -> None:
    truth = brackets(mixer)
    trace = truth.trace(truth.ids("( [ ] ( [ ( ) ]"), {})
    state = truth.stack.initial_state(1)
    found: list[list[np.ndarray]] = [[] for _ in truth.stack.blocks]
    for token in trace.ids.tolist():
        _, state = truth.stack.step(torch.tensor([token]), state)
        for steps, (_, memory) in zip(found, state, strict=True):
            steps.append(memory[0].flatten(0, -2).double().numpy().copy())
    for number, steps in enumerate(found, start=1):
        block = trace.block(number)
        used = sorted(truth.layout.axes[f"backbone.layers.{number - 1}.mixer.out_proj.weight"][1].places)
        assert np.array_equal(block.states(), np.array(steps)[:, used])
        assert block.x.shape == block.gate.shape == block.delta.shape == (len(trace), len(used))


def test_looking() -> None:
    truth = brackets("mamba")
    trace = truth.trace(truth.ids("( [ ]"), {})
    assert trace.at(-1)["stack"] == "(" and trace.at(0)["input"] == "("
    assert trace.table("stack").splitlines()[2] == "1  [      ["
    assert trace.lane("stack[1]").tolist() == [0, 1, 0]
    why = trace.why(1)
    assert (why.answer, why.lead, why.rule) == ("]", 1.0, "stack") and str(why).startswith("] scores 1, 1 over")
    assert sum(term.lead for term in why.terms) == why.lead
    with pytest.raises(IndexError, match="the input has 3"):
        trace.at(3)
    with pytest.raises(NoVariable, match="no variable 'stak'; did you mean 'stack'"):
        trace["stak"]
    with pytest.raises(KeyError, match="no lane 'stack\\[2\\]'; did you mean 'stack\\[1\\]'"):
        trace.lane("stack[2]")
    with pytest.raises(ValueError, match="there is no block 4: the model has 3"):
        trace.block(4)


def test_a_hook_that_is_not_there_says_why() -> None:
    truth = brackets("mamba")
    found = hooks(truth)
    assert found["stack"].name == "stack" and "stak" not in found
    other = next(name for v in truth.variables if v.name == "stack" for name in v.names if name != "stack")
    assert found[other] is found["stack"]
    with pytest.raises(NoVariable, match="no variable 'stak'; did you mean 'stack'"):
        found["stak"]
    output = next(v for v in truth.variables if v.stream is truth.compiled.source.output)
    with pytest.raises(NoVariable, match="is the output, which stands in the model's logits"):
        found[output.name]
    lock = truth_of(compile(entries()["lock"].circuit(), "mamba"))
    with pytest.raises(NoVariable, match="'asked == 1' is computed within a block and stands on no lane"):
        hooks(lock)["asked == 1"]


def test_an_input_outside_the_promise_is_marked() -> None:
    truth = brackets("mamba")
    assert truth.trace(truth.ids(") ("), {}).outside == [
        "the input is none of the promised: brackets, at most 3 of them open"
    ]
    assert truth.trace(truth.ids("( ) " * 7), {}).outside == ["the input has 14 tokens, and the promise ends at 12"]
    with pytest.raises(ValueError, match="no token"):
        truth.ids(" ")


@pytest.mark.parametrize("mixer", MIXERS)
def test_a_loaded_checkpoint_is_traced(mixer: str, tmp_path: Path) -> None:
    compile(two_brackets.circuit(), mixer).save(tmp_path / "two")
    model = load(tmp_path / "two")
    assert model.trace("( [ ] ( [")["stack"] == ["(", "[", "(", "(", "["]
    assert model.trace(["(", "["])["stack"] == ["(", "["]
    assert model.patch({"stack": {1: "("}}).trace("( [").answers == [")", ")"]
    changed = load(tmp_path / "two")
    with torch.no_grad():
        changed.blocks[1].D[0] += 1
    with pytest.raises(CheckpointError, match="backbone.layers.1.mixer.D are not those that circuit.json compiles to"):
        changed.trace("(")


@pytest.mark.parametrize("target", ["gated-deltanet", "gated-deltanet-qwen"])
def test_a_checkpoint_is_traced_whose_library_has_other_names(target: str, tmp_path: Path) -> None:
    compiled = compile(NAMED["accepted"].build(), target)
    compiled.save(tmp_path / "made")
    model = load(tmp_path / "made")
    word = compiled.source.token_language.sample(1, 6, 0)
    trace = model.trace(word[0].tolist())
    assert trace.agrees
    theirs = transformers_model(tmp_path / "made", "float32")
    for name, hook in model.hooks().items():
        stream = read_all(theirs, [Site(hook.module, False, 0)], torch.from_numpy(word))[0]
        assert trace[name] == hook.read(stream)[0], name
    changed = load(tmp_path / "made")
    with torch.no_grad():
        changed.blocks[0].A_log[0] += 1
    with pytest.raises(CheckpointError, match="mixer.A_log are not those that circuit.json compiles to"):
        changed.trace(word[0].tolist())


def test_a_trace_of_ten_thousand_tokens_takes_under_a_second_beyond_the_forward_pass() -> None:
    found = tracing.measured("mamba", rounds=1)
    assert 0 < found["trace, all read"] - found["forward"] < 1  # CPU seconds; 0.1 are usual


def renamed_by_its_author() -> Circuit:
    """Eight less the a's since the last b, and less one at a c: its author calls these output and input."""
    letters = Alphabet.of("a", "b", "c", *map(str, range(9)))
    x = Tokens(letters)
    output = count(x.is_in("a"), reset=x.is_in("b"))
    token = (output + x.is_in("c")).named("input")
    answer = readout_integer(8 - token, letters, {str(n): n for n in range(9)})
    language = InputLanguage.of(letters, "any", [("any", "any", ("a", "b", "c"))], 7, "strings of a, b, c")
    return Circuit("own-names", answer, language)


def test_the_input_and_the_answers_keep_their_names_whatever_an_author_calls_his_own(tmp_path: Path) -> None:
    compile(renamed_by_its_author()).save(tmp_path / "own")
    model = load(tmp_path / "own")
    assert verify_checkpoint(tmp_path / "own", samples=20).good
    plain, patched = model.trace("a b a c"), model.patch({"output#2": {1: 3}}).trace("a b a c")
    for trace, answers in ((plain, ["7", "8", "7", "6"]), (patched, ["7", "5", "7", "6"])):
        assert trace.agrees
        assert trace.answers == answers == [model.tokens[i] for i in trace.scores.argmax(-1)]
        assert trace["output"] == answers and [trace.at(i)["input"] for i in range(4)] == ["a", "b", "a", "c"]
        assert len(set(trace.table().splitlines()[0].split())) == len(trace.table().splitlines()[0].split())
    assert plain["output#2"] == [1, 0, 1, 1]
    assert model.interchange("output#2", [("a b", "a a", 1)]).moved == 1
    for name, reason in (("input", NoVariable), ("output", NotCarried)):
        with pytest.raises(reason):
            model.patch({name: {1: 3}}).trace("a b a c")


def test_a_variable_that_is_called_token_stands_beside_the_input(tmp_path: Path) -> None:
    letters = Alphabet.of("a", "b", "token")
    token = Tokens(letters).one_hot("token", "b", name="token")
    answer = readout_one_hot(token.shift(1), letters, ("token", "b"))
    compile(Circuit("tokens", answer, InputLanguage.everything(letters, 9))).save(tmp_path / "tokens")
    trace = load(tmp_path / "tokens").trace("a token b")
    assert trace["token"] == [None, "token", "b"]
    for i, letter in enumerate(trace.tokens):
        assert trace.at(i) == {"input": letter} | {name: trace[name][i] for name in trace.readable}
    header = trace.table().splitlines()[0].split()
    assert header[:2] == ["input", "token"] and len(set(header)) == len(header)


@pytest.mark.parametrize("name", ["x\x1b[31m\n\n y", "_kept", "is", ""])
def test_a_saved_name_that_no_author_can_have_given_is_refused(name: str, tmp_path: Path) -> None:
    compile(renamed_by_its_author()).save(tmp_path / "own")
    rename(tmp_path / "own", lambda node: node.update(variable=name))
    for read in (lambda: load(tmp_path / "own").trace("a b"), lambda: verify_checkpoint(tmp_path / "own")):
        with pytest.raises(CheckpointError, match="a variable is called") as caught:
            read()
        assert str(caught.value).isprintable()


def test_names_that_do_not_follow_from_an_authors_are_a_difference(tmp_path: Path) -> None:
    compile(renamed_by_its_author()).save(tmp_path / "own")
    rename(tmp_path / "own", lambda node: node.update(names=["output", *node["names"]]))
    (complaint,) = verify_checkpoint(tmp_path / "own", samples=20).complaints
    assert "causal_graph.json has another nodes[0].names: " in complaint


def rename(directory: Path, edit: Callable[[dict], None]) -> None:
    """Edit every node of the causal graph, and seal the checkpoint again."""
    file = directory / "causal_graph.json"
    graph = json.loads(file.read_text())
    for node in graph["nodes"]:
        edit(node)
    file.write_text(json.dumps(graph))
    reseal(directory)
