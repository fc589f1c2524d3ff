"""Parts B and C: the weights compute the circuit as written, for the circuits that the rules cover."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.data import to_data
from compiler.language.input_language import InputLanguage
from compiler.language.output import decide, readout_integer, readout_one_hot
from compiler.language.source import Tokens
from constructions.registry import CONSTRUCTIONS
from tests.circuits import CASES, counters, over_abc
from tests.circuits.memories import K4
from tests.spread import some
from tests.verify.checker.checkpoints import write
from tests.verify.checker.faults import inject
from verify.checker.check import check
from verify.checker.meaning.relations import relations

NO_BLOCK = {"a_constant"}
CONSTRUCTED = [
    ("mqar", {"kappa": 3, "vocab": 6}),
    ("mqar", {"kappa": 3, "vocab": 6, "write": "last"}),
    ("mqar", {"kappa": 3, "vocab": 6, "write": "first"}),
    ("mqar", {"kappa": 2, "vocab": 1, "write": "first"}),  # a code with a lane that is 0 stays 0 where it is masked
    ("mqar", {"kappa": 256, "vocab": 2048}),  # many keys: what letters leave open counts once, not for each key
    ("mqar", {"kappa": 16, "vocab": 512, "arch": "mamba2"}),  # many letters: few of their scores are compared
    ("induction-heads", {"vocab": 5}),
    ("keep-nth", {"n": 3, "vocab": 8}),
    ("absolute-time", {"horizon": 6}),
    ("count-in-row", {"largest": 5}),
    ("copy", {"n": 3, "vocab": 2}),
    ("copy", {"n": 3, "vocab": 2, "form": "pointer"}),
    ("copy", {"n": 3, "vocab": 2, "form": "delay", "arch": "mamba2"}),
    ("copy", {"n": 3, "vocab": 2, "form": "place"}),
    ("copy", {"n": 3, "vocab": 2, "form": "place", "arch": "mamba2"}),
    ("phonebook", {}),
    ("selective-copy", {}),
    ("coin-change", {}),
    ("mqar", {"kappa": 3, "vocab": 6, "arch": "s4d"}),  # drives that are never positive have a total too
    ("lis", {"length": 4, "values": 3}),
    ("copy", {"n": 3, "vocab": 2, "arch": "mamba2"}),  # a sum less what it was at a flag is a count since
    ("selective-copy", {"n": 2, "vocab": 2, "length": 6, "arch": "mamba2"}),
    ("coin-change", {"amount": 6, "arch": "mamba2"}),
    ("edit-distance", {"length": 3, "distinct_letters": 2}),
    ("fibonacci", {"modulus": 3, "length": 5}),  # an `and` that paths make linear
    ("max-subarray", {"length": 2, "values": 2, "arch": "mamba2"}),  # the weight of rules, beside a largest of two
    ("knapsack", {"items": 2, "capacity": 3, "values": 2, "arch": "mamba2"}),  # a count since, one position back
    ("lcs", {"length": 2, "distinct_letters": 2}),  # gates that are functions of one integer
]


@pytest.mark.parametrize("case", [c for c in CASES if c.name not in NO_BLOCK], ids=lambda c: c.name)
@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_proves_every_circuit(case, target, tmp_path):
    if target not in case.targets:
        pytest.skip("has no such target")
    verdict = check(write(tmp_path / "c", case.build(), target))
    assert verdict.arithmetic is None, verdict.arithmetic
    assert verdict.specials is None
    assert verdict.accepted, verdict.reason


@pytest.mark.parametrize("name, params", CONSTRUCTED, ids=str)
def test_proves_constructions(name, params, tmp_path):
    construction = CONSTRUCTIONS[name](**params)
    verdict = check(write(tmp_path / "c", construction.circuit(), construction.target))
    assert verdict.accepted, verdict.reason


def test_the_weights_of_another_circuit_are_not_accepted(tmp_path):
    """Exact weights, and the circuit file of a circuit that differs in one number."""
    build = CONSTRUCTIONS["keep-nth"]
    here, other = (build(n=n, vocab=8).circuit() for n in (3, 4))
    directory = write(tmp_path / "here", here, "mamba")
    assert check(directory).accepted
    circuit = json.loads((directory / "circuit.json").read_text()) | {"streams": to_data(other)["streams"]}
    (directory / "circuit.json").write_text(json.dumps(circuit))
    verdict = check(directory)
    assert verdict.arithmetic is None and "the circuit's" in (verdict.meaning or "")


def test_a_condition_that_nothing_implies_is_kept(tmp_path):
    """Weights that store every value behind a key are not those that store some, nor the other way round."""
    tokens = Tokens(K4)
    key, value = tokens.one_hot("k"), tokens.one_hot("v")
    needed, some = tokens.is_in(["v0", "v1", "v2"]), tokens.is_in(["v1"])
    stored = [memory.write(key.shift(1), value, when=flag).read(key) for flag in (needed, some)]
    made = [Circuit("c", readout_one_hot(x, K4, "v"), InputLanguage.everything(K4, 10)) for x in stored]
    for i, here in enumerate(made):
        directory = write(tmp_path / str(i), here, "mamba")
        assert check(directory).accepted
        (directory / "circuit.json").write_text(json.dumps(to_data(made[1 - i])))
        assert check(directory).meaning


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_another_product_is_not_taken_for_it(target, tmp_path):
    """(a − b)²(b − 1) has 50 breakpoints, put together from those of two factors; with another number it is another."""
    a, b = counters
    directory = write(tmp_path / "here", over_abc("product", (a - b) ** 2 * (b - 1)), target)
    for other in (
        (a - b) ** 2 * (b - 2),
        (a - b - 1) ** 2 * (b - 1),
        (a - b) * (b - a) * (b - 1),
        (a - b) ** 2 * (a - 1),
    ):
        circuit = json.loads(json.dumps(to_data(over_abc("other", other))))
        (directory / "circuit.json").write_text(json.dumps(circuit))
        verdict = check(directory)
        assert verdict.arithmetic is None and verdict.meaning


@pytest.mark.parametrize(
    "policy, operands, told", [("zz", 3, "'zz'"), (None, 3, "policy is missing, or nothing"), ("sum", 5, "5 operands")]
)
def test_a_memory_of_no_known_policy_means_nothing(policy, operands, told, tmp_path):
    directory = write(tmp_path / "c", next(c for c in CASES if c.name == "mqar_sum").build(), "mamba")
    circuit = json.loads((directory / "circuit.json").read_text())
    (memory_read,) = (s for s in circuit["streams"] if s["operation"] == "MemoryRead")
    memory_read["attributes"]["policy"] = policy
    memory_read["inputs"] += memory_read["inputs"][:1] * (operands - len(memory_read["inputs"]))
    (directory / "circuit.json").write_text(json.dumps(circuit))
    assert told in (check(directory).meaning or "")


@pytest.mark.parametrize("output", [counters[0] + 3, (counters[0] + 3).cumsum()], ids=["readout", "operand"])
def test_a_matrix_reads_every_lane(output, tmp_path):
    """A map of one column beside a constant that has grown to three lanes is no map of it."""
    directory = write(tmp_path / "c", over_abc("counts", output), "mamba")
    circuit = json.loads((directory / "circuit.json").read_text())
    assert check(directory).accepted
    (constant,) = (s for s in circuit["streams"] if s["operation"] == "Constant")
    constant["attributes"]["values"] += ["1", "5"]
    (directory / "circuit.json").write_text(json.dumps(circuit))
    assert check(directory).meaning


def test_rules_of_one_letter_may_hold_together(tmp_path):
    """Where only one letter comes, both always do, and the lead that they need is less than over all letters."""
    letters = Alphabet.of("a", "b", "c")
    x = Tokens(letters)
    scores, always = readout_integer(x.number({"c": 5}), letters, {"b": 5, "c": 1}), x.is_in(["c"])
    words = InputLanguage.of(letters, "s", [("s", "s", ["c"], False)], 1000, "c only")
    circuit = Circuit("twice", decide([(always, "b"), (always, "b")], otherwise=scores), words)
    assert check(write(tmp_path / "c", circuit, "mamba")).accepted


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_rules_may_weigh_far_more_than_they_need(target, tmp_path):
    """All scores of a far number are low together, so their leads are small; the weights count with all or nothing."""
    letters = Alphabet.of("a", "b", "c")
    x = Tokens(letters)
    scores = readout_integer(x.number({"a": -1}), letters, {"b": 2047})
    circuit = Circuit("far", decide([(x.is_in(["b"]), "a")], otherwise=scores), InputLanguage.everything(letters, 7))
    directory = write(tmp_path / "far", circuit, target)
    assert check(directory).accepted
    tensors = load_file(directory / "model.safetensors")
    head = tensors["lm_head.weight"]
    place = 0, int(head[0].argmax())  # the rule, in the row of its letter
    assert head[place] > 2**20
    for weight, accepted in ((head[place] / 2, True), (4094, False)):  # of a lead of 4,095
        changed = head.copy()
        changed[place] = weight
        save_file(tensors | {"lm_head.weight": changed}, directory / "model.safetensors")
        assert check(directory).accepted == accepted


def test_few_sums_of_lanes_decide_for_all_scores():
    """Random matrices of small rank: the sums span its rows, and are mostly no more than its rank."""
    rng, fewer = np.random.default_rng(0), 0
    for _ in range(200):
        height, rank, width = rng.integers(1, 9, size=3)
        columns = (rng.integers(-2, 3, (height, rank)) @ rng.integers(-2, 3, (rank, width))) / 4.0
        columns = columns[:, columns.any(axis=0)]
        if not columns.size:
            continue
        found = relations(columns)
        sums = np.array([[float(row.get(c, 0)) for c in range(columns.shape[1])] for row in found.values()])
        rank = np.linalg.matrix_rank(sums)
        assert rank == len(found) == np.linalg.matrix_rank(np.concatenate([sums, columns]))
        fewer += rank == np.linalg.matrix_rank(columns) < height
    assert fewer > 50


@pytest.mark.parametrize("letter", range(7))
def test_every_row_of_the_head_counts(letter, tmp_path):
    """Few scores are compared; one weight of any letter's row changed is found all the same."""
    construction = CONSTRUCTIONS["mqar"](kappa=3, vocab=3, arch="mamba2")
    directory = write(tmp_path / "c", construction.circuit(), "mamba2")
    assert check(directory).meaning is None
    tensors = load_file(directory / "model.safetensors")
    tensors["lm_head.weight"][letter, 0] += 4.0
    save_file(tensors, directory / "model.safetensors")
    verdict = check(directory)
    assert verdict.arithmetic is None and verdict.meaning


def test_a_rule_must_outweigh_every_lead(tmp_path):
    """A weight of a rule that some score can exceed is no weight of a rule, whichever number of its row it is."""
    construction = CONSTRUCTIONS["max-subarray"](length=2, values=2)
    circuit = construction.circuit()
    directory = write(tmp_path / "c", circuit, "mamba")
    assert check(directory).accepted
    (token,) = json.loads((directory / "circuit.json").read_text())["streams"][-1]["attributes"]["tokens"]
    tensors = load_file(directory / "model.safetensors")
    head = tensors["lm_head.weight"]
    live = np.flatnonzero(head[token])
    for lane in some(live, 0.2):
        changed = head.copy()
        changed[token, lane] /= 16
        save_file(tensors | {"lm_head.weight": changed}, directory / "model.safetensors")
        assert not check(directory).accepted


@pytest.mark.parametrize("text", ["{}", "[]", '{"streams": 3, "output": 0}', '{"streams": [{}], "output": 0}', "{"])
def test_a_circuit_that_is_none_is_refused(text, tmp_path):
    directory = write(tmp_path / "c", CONSTRUCTIONS["absolute-time"](horizon=3).circuit(), "mamba")
    (directory / "circuit.json").write_text(text)
    assert check(directory).meaning


@pytest.mark.parametrize("name", ["mqar_sum", "first_rule_that_holds"])
def test_no_plant_that_changes_a_logit_is_accepted(name, tmp_path):
    case = next(c for c in CASES if c.name == name)
    tried = len(some(range(20), 0.08))
    tally, missed = inject(write(tmp_path / "c", case.build(), "mamba"), tried, random.Random(3), sequences=12)
    assert not missed, missed[0]
    assert tally["rejected"] == tried


def test_the_verdict_names_each_part(tmp_path):
    directory = write(tmp_path / "c", CONSTRUCTIONS["absolute-time"](horizon=3).circuit(), "mamba")
    told = check(directory).to_json()
    assert all(told[part]["proved"] for part in ("arithmetic", "meaning", "specials"))
    assert json.loads(json.dumps(told))["domain"].startswith("every sequence")
