"""KEEP n-th: sizes, scores, answers, the certificate for every length, and what happens where the count saturates."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

import compiler
from compiler.artifact.model import Stack
from compiler.artifact.numeric import numeric_stack
from compiler.artifact.package import bare, bare_sizes, language_model
from compiler.compiled import run_blocks
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens, numbers
from compiler.language.stream import constant
from compiler.language.types import Bool, Int
from compiler.language.words import concatenate, latch
from compiler.runtime.streaming import stream_scores
from constructions.checkpoints.built import build
from constructions.checkpoints.guarantee import proof_of
from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.with_position import AbsoluteTimePosition, KeepNthPosition
from tests import own_sizes
from tests.artifact.test_numbers import reseal
from tests.constructions.test_construct import run
from verify.tasks.keep import Keep, keep_oracle
from verify.tasks.positions import clock_scores, kept_scores
from verify.tasks.task import IGNORED

ROOT = Path(__file__).parents[2]


def built(**parameters):
    construction = KeepNth(**parameters)
    compiled = compile(construction.circuit(), construction.target)
    return construction, compiled, bare(compiled)


def assert_right(compiled, model, batch):
    with torch.no_grad():
        scores = model(torch.from_numpy(batch.tokens)).numpy()[..., : compiled.source.alphabet.size]
    assert np.array_equal(scores, compiled.interpret(batch.tokens)), batch.case
    asked = batch.labels != IGNORED
    assert (scores.argmax(-1) == batch.labels)[asked].all(), batch.case


def test_the_oracle_by_hand():
    assert keep_oracle([4, 7, 2, 9], 3) == [IGNORED, IGNORED, 2, 2]


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
@pytest.mark.parametrize("n, vocab", [(1, 1), (1, 7), (2, 128), (5, 128), (2500, 20)])
def test_sizes_keep_to_what_was_counted_whatever_n(arch, n, vocab):
    construction, compiled, _ = built(n=n, vocab=vocab, arch=arch)
    sizes, most = bare_sizes(compiled), own_sizes.keep_nth(vocab, arch)
    assert len(sizes) == most.layers
    for name in ("d_model", "d_inner", "d_state"):
        assert max(getattr(size, name) for size in sizes) <= getattr(most, name), name


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
@pytest.mark.parametrize("n", [1, 5])
def test_table_1_of_the_paper(arch, n):
    """T = 50, V = 128."""
    construction, compiled, model = built(n=n, arch=arch)
    (task,) = construction.tasks()
    for batch in [*task.random(64, seed=0), *task.adversarial()]:
        assert_right(compiled, model, batch)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_every_short_string(n):
    _, compiled, model = built(n=n, vocab=3)
    for batch in Keep(n, 3, 6).exhaustive():
        assert_right(compiled, model, batch)


def test_as_a_language_model_far_into_the_text():
    _, compiled, _ = built(n=2500, vocab=20)
    packaged = language_model(compiled)
    stack = Stack.from_language_model(packaged.config, packaged.tensors)
    (batch,) = Keep(2500, 20, 5000).random(2, seed=1)
    assert_right(compiled, stack, batch)


def test_block_ir_says_what_the_module_says():
    _, compiled, _ = built(n=5, vocab=6)
    (batch,) = Keep(5, 6, 30).random(4, seed=1)
    logits = run_blocks(compiled, batch.tokens)[-1] @ compiled.head.toarray().T
    assert np.array_equal(logits, compiled.interpret(batch.tokens))


@pytest.mark.parametrize("count", [2.0**24 - 2, 2.0**24, 2.0**24 + 2048, 2.0**31, 2.0**40])
@pytest.mark.parametrize("packaged", [False, True])
def test_saturated_counts_change_nothing(packaged, count):
    """The count set to where 2^24, or 2^40, tokens would have brought it: the answer stays, in `step()`, to the bit."""
    n, vocab = 5, 12
    _, compiled, stack = built(n=n, vocab=vocab)
    if packaged:
        model = language_model(compiled)
        stack = Stack.from_language_model(model.config, model.tensors)
    tokens = torch.from_numpy(np.random.default_rng(0).integers(vocab, size=(8, n + 6)))
    state = stack.initial_state(8)
    for t in range(n + 1):
        before, state = stack.step(tokens[:, t], state)
    unit = state[0][1].max() / (n + 1)
    state[0][1].mul_(0).add_((state[0][1] == 0) * 0 + count * unit)
    for t in range(n + 1, n + 6):
        after, state = stack.step(tokens[:, t], state)
        assert torch.equal(after, before)


def test_a_million_tokens():
    """Every answer of 1,000,000 tokens, in chunks."""
    vocab, total = 16, 1_000_000
    stack = built(n=5, vocab=vocab)[2]
    tokens = torch.from_numpy(np.random.default_rng(1).integers(vocab, size=(1, total)))
    answers = torch.cat([scores[0].argmax(-1) for scores in stream_scores(stack, tokens.split(16384, dim=1))])
    assert len(answers) == total and (answers[4:] == tokens[0, 4]).all()


@pytest.mark.parametrize(("dtype", "first"), [(torch.bfloat16, 262), (torch.float32, 16_777_222)])
def test_a_bump_of_three_ramps_opens_the_latch_again(dtype, first):
    """The numbers of docs/keep-nth.md, n = 5. The two falling ramps of the construction are right at every position."""
    places = torch.tensor([*range(1, 2000), *range(2**24 - 64, 2**24 + 64)], dtype=torch.int64)
    t, relu = places.double().to(dtype), torch.relu
    bump = relu(t - 4) - 2 * relu(t - 5) + relu(t - 6)
    assert int(places[(bump != (places == 5)).nonzero()[0]]) == first
    falling = relu(6 - t) - relu(5 - t)
    assert torch.equal(falling, (places <= 5).to(dtype))


def counted(build, max_length):
    alphabet = Alphabet.of("a", "b")
    count, token = constant(1).cumsum().named("count"), Tokens(alphabet).one_hot()
    return Circuit("counted", build(count, token), InputLanguage.everything(alphabet, max_length))


@pytest.mark.parametrize(
    "build",
    [
        lambda count, token: count,
        lambda count, token: concatenate(latch(token, when=count <= 3), count),
        lambda count, token: latch(count, when=count <= 3),
        lambda count, token: latch(token, when=count <= 2**24),
        lambda count, token: latch(token, when=(count - 5 * token[0].cumsum()) <= 3),
        lambda count, token: (count * 3).relu(),
    ],
)
def test_other_uses_of_an_unbounded_count_are_refused(build):
    with pytest.raises(CompileError, match="quanta"):
        compile(counted(build, 2**40))


@pytest.mark.parametrize("relation", ["<=", "<", ">", ">=", "==", "!="])
def test_comparisons_of_a_count(relation):
    """All six agree with Python; those that are falling ramps compile for any length."""

    def flags(count, token):
        return {"<=": count <= 4, "<": count < 4, ">": count > 4, ">=": count >= 4, "==": count == 4, "!=": count != 4}[
            relation
        ]

    circuit = counted(lambda count, token: latch(token, when=flags(count, token)), 2**40)
    tokens = np.random.default_rng(0).integers(2, size=(5, 12))
    compiled = compile(circuit)
    with torch.no_grad():
        assert np.array_equal(bare(compiled)(torch.from_numpy(tokens)).numpy(), compiled.interpret(tokens))


@pytest.mark.parametrize("n, vocab", [(1, 1), (3, 2), (5, 20), (100, 9)])
def test_with_the_position_as_an_input_one_block_is_enough(n, vocab):
    """At every position, and where they jump to places that float32 rounds and the bump of A4 opens again."""
    keep = KeepNthPosition(n, vocab)
    compiled = compile(keep.circuit())
    (size,) = bare_sizes(compiled)
    assert size.d_inner == int(np.ceil(np.log2(vocab + 1))) + 3 <= own_sizes.keep_nth_position(vocab).d_inner
    assert size.d_state == 1
    tokens, late = np.random.default_rng(0).integers(vocab, size=(4, n + 7)), 2**24 + np.array([-1, 0, 1, 3, 9])
    positions = np.array([*range(1, n + 1), *late, 2**31 + 7, 2**40])
    inputs = {"token": np.eye(vocab)[tokens], "position": np.tile(positions[None, :, None].astype(float), (4, 1, 1))}
    scores = numeric_stack(compiled).run(inputs)
    assert (scores[:, n - 1 :].argmax(axis=-1) == tokens[:, [n - 1]]).all()
    told = kept_scores(tokens[0].tolist(), n, vocab)
    assert scores[0, n - 1 :].tolist() == told[n - 1 :]


def test_absolute_time_with_the_position_as_an_input():
    (size,) = bare_sizes(compile(AbsoluteTimePosition(6).circuit()))
    assert (size.d_inner, size.d_state) == (1, 1)
    positions = np.array([1.0, 2, 5, 6, 7, 2**24 + 1, 2**40])[None, :, None]
    scores = numeric_stack(compile(AbsoluteTimePosition(6).circuit())).run({"position": positions})
    assert scores[0].argmax(axis=-1).tolist() == [0, 1, 4, 5, 5, 5, 5]
    assert scores[0, :3].tolist() == [clock_scores(5, 6)[t] for t in (0, 1, 4)]


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
@pytest.mark.parametrize(
    "command", [("keep-nth-position", "--n", "2", "--vocab", "3"), ("absolute-time-position", "--horizon", "4")]
)
def test_models_with_positions_are_saved_proved_and_verified(command, arch, tmp_path, capsys):
    directory = tmp_path / "m"
    assert run(*command, "--arch", arch, "--samples", "8", "--out", str(directory), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["level"] == "bit-exact" and told["positions"] == 2**40 and told["arch"] == arch
    assert all(task["accuracy"] in (1, None) and task["bit_exact"] for task in told["tasks"].values())
    assert [task["sequences"] for task in told["tasks"].values()] == [8, 8]
    assert run("verify", str(directory), "--json") == 0
    assert json.loads(capsys.readouterr().out)["guarantee"]["certificate"]["kind"] == "PositionsCertificate"
    assert run("prove", str(directory), "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["accepted"] and record == json.loads((directory / "proof.json").read_text())
    guarantee = json.loads((directory / "construction.json").read_text())["guarantee"]
    assert guarantee["certificate"] == record["certificate"] and guarantee["proof"] == record["proof"]
    assert record["proof"].startswith("proved from the weights") and "only tested: a whole sequence" in record["proof"]
    assert record["proof"] in (directory / "README.md").read_text()
    stack = compiler.load(directory)
    given = {"token": np.eye(3)[[[0, 2, 1, 1]]]} if "--n" in command else {"position": np.array([[[3.0]]])}
    assert stack.run(given)[0, -1].argmax() == 2


def test_a_changed_weight_is_not_proved(tmp_path, capsys):
    directory = tmp_path / "m"
    assert run("keep-nth-position", "--n", "2", "--vocab", "3", "--samples", "8", "--out", str(directory)) == 0
    tensors = load_file(directory / "model.safetensors")
    tensors["head.weight"][0] *= -1
    save_file(tensors, directory / "model.safetensors")
    capsys.readouterr()
    assert run("prove", str(directory)) == 1
    assert "not proved: the scores at position 1 are others" in capsys.readouterr().out
    assert run("verify", str(directory), "--samples", "8") == 1


@pytest.mark.parametrize("file", ["circuit.json", "construction.json"])
def test_another_circuit_and_a_longer_promise_are_not_proved(file, tmp_path, capsys):
    """The certificate is of the construction: files that say something else are not what it speaks of."""
    directory = tmp_path / "m"
    assert run("keep-nth-position", "--n", "2", "--vocab", "3", "--samples", "8", "--out", str(directory)) == 0
    content = json.loads((directory / file).read_text())
    if file == "circuit.json":
        scale = content["streams"][content["output"]]["attributes"]["matrices"][0]
        scale["diagonal"] *= 2
    else:
        content["promise"]["length"] = 2**50
    (directory / file).write_text(json.dumps(content))
    reseal(directory)
    capsys.readouterr()
    assert run("prove", str(directory)) == 1
    assert f"not proved: {file}" in capsys.readouterr().out


def test_what_is_not_proved_is_not_said_to_be(tmp_path, capsys):
    """Without --certify nothing is claimed; too many steps are a reason, not a proof."""
    assert run("absolute-time-position", "--no-certify", "--samples", "8", "--out", str(tmp_path / "m"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["guarantee"]["proof"] == "not asked for"
    assert run("verify", str(tmp_path / "m"), "--samples", "8") == 0
    construction = KeepNthPosition(n=2**20, vocab=128)
    certificate, said = proof_of(build(construction))
    assert certificate is None and "only tested" in said and "steps through" in said


def test_mamba2_says_by_how_much_its_count_is_too_long():
    """2^22 tokens fit into the norm's sum of squares, four times as many do not; bare modules have no such limit."""
    build(KeepNth(arch="mamba2", max_length=2**22))
    with pytest.raises(CompileError, match="no room .*a max_length [248] times shorter may fit"):
        build(KeepNth(arch="mamba2", max_length=2**24))
    compile(KeepNth(arch="mamba2", max_length=2**40).circuit(), "mamba2")


LONGEST, WITH_64_CHANNELS = 5_931_641, 11_863_283  # as docs/keep-nth.md has them


@pytest.mark.parametrize(("vocab", "longest"), [(3, LONGEST), (128, WITH_64_CHANNELS), (4096, LONGEST)])
def test_mamba2_is_built_up_to_the_length_that_its_page_states(vocab, longest):
    """d_inner is 32, 64 and 128: of 4^k one square makes the ballast, of 2·4^k two of half the size."""
    assert f"{longest:,}" in (ROOT / "docs/keep-nth.md").read_text("utf-8")
    build(KeepNth(vocab=vocab, arch="mamba2", max_length=longest))
    with pytest.raises(CompileError, match="a max_length 2 times shorter may fit"):
        build(KeepNth(vocab=vocab, arch="mamba2", max_length=longest + 1))


def test_mamba2_is_proved_wherever_it_is_built(tmp_path, capsys):
    """There the sum of squares is 2^126 and the count's beside it: next to 2^127, and short of an overflow."""
    length, out = str(WITH_64_CHANNELS), str(tmp_path / "m")
    assert run("keep-nth", "--arch", "mamba2", "--max-length", length, "--samples", "4", "--out", out, "--json") == 0
    assert "proved from the weights" in json.loads(capsys.readouterr().out)["guarantee"]["proof"]


def test_a_position_used_otherwise_is_refused():
    token, position = numbers(Bool(), "token"), numbers(Int(1, 2**40), "position")
    with pytest.raises(CompileError, match="quanta"):
        compile(Circuit("bump", latch(token, when=(position - 5).one_hot(2)[0]), length=2**40))
