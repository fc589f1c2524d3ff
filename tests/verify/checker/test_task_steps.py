"""Part D, step by step: recalls, runs and readouts by hand, and the reasons why one proves nothing."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from tests.spread import some
from tests.verify.checker.evaluator import evaluate
from tests.verify.checker.small_case import Case
from verify.checker.formats import EXACT, Rejected
from verify.checker.meaning.circuit import Reader
from verify.checker.tasks import readout
from verify.checker.tasks.readout import Heard, Readout
from verify.checker.tasks.task import Recall, prove_task
from verify.checker.tasks.task_pairs import Sets
from verify.checker.values.language import parse
from verify.checker.values.values import World


def stream(operation: str, inputs: list[int], **attributes) -> dict:
    return {"operation": operation, "inputs": inputs, "attributes": attributes}


def rows(*table: list[int]) -> dict:
    listed = [[[c, v] for c, v in enumerate(row) if v] for row in table]
    return {"shape": [len(table), len(table[0])], "rows": listed}


def diagonal(weight: int, size: int = 2) -> dict:
    return {"diagonal": weight, "size": size}


# Of two keys (ids 1, 2) and two values (3, 4): the present letter's key, whether it is a value, its code.
PARTS = [
    stream("Embed", [], table=rows([0, 0], [1, 0], [0, 1], [0, 0], [0, 0])),
    stream("Embed", [], table=rows([0, 0], [0, 0], [0, 0], [1, 1], [1, 1])),
    stream("Embed", [], table=rows([0, 0], [0, 0], [0, 0], [1, -1], [-1, 1])),
    stream("Shift", [0], k=1),
    stream("Shift", [1], k=1),
    stream("Embed", [], table=rows([1, 1], [0, 1], [1, 0], [1, 1], [1, 1])),  # is it another letter than the key's?
    stream("Shift", [5], k=1),
    stream("Constant", [], values=[1, 1]),
    stream("Linear", [7, 6], matrices=[diagonal(1), diagonal(-1)]),  # the key before, and 1 before the start
    stream("Linear", [0, 3], matrices=[diagonal(1), diagonal(1)]),  # the present key and the one before
    stream("Linear", [0, 4], matrices=[diagonal(1), diagonal(-1)]),
    stream("Relu", [10]),  # the present key, unless a value stands before
]
HEAD = rows([0, 0], [0, 0], [0, 0], [1, -1], [-1, 1])


@pytest.mark.parametrize(
    "write, policy, key, query, right",
    [
        ("sum", "sum", 3, 0, True),
        ("last", "last", 3, 0, True),
        ("first", "first", 3, 0, True),
        ("sum", "sum", 8, 0, False),  # the first position writes
        ("last", "last", 3, 9, False),  # the key before is read as well
        ("sum", "sum", 3, 9, False),
        ("sum", "sum", 3, 11, False),  # after a value nothing is read
        ("sum", "sum", 0, 0, False),  # the present key writes
        ("sum", "sum", 3, 3, False),
    ],
)
def test_each_step_of_a_recall_by_hand(write, policy, key, query, right):
    memory = stream("MemoryRead", [2, key, query], policy=policy, skip=0)
    circuit = {"streams": [*PARTS, memory, stream("Linear", [len(PARTS)], matrices=[HEAD])], "output": len(PARTS) + 1}
    tried = Case("mqar", {"kappa": 2, "vocab": 2, "write": "last"}, 6)
    claim = tried.claim | {"write": write}
    if policy != "sum":  # a value of 0 must not overwrite
        circuit["streams"].insert(len(PARTS), stream("Embed", [], table=rows([0], [0], [0], [1], [1])))
        circuit["streams"][-2]["inputs"].append(len(PARTS))
        circuit["streams"][-1]["inputs"], circuit["output"] = [len(PARTS) + 1], len(PARTS) + 2
    assert (tried.lead(circuit, claim) > 0) == right
    assert (tried.prove(circuit, claim) > 0) == right


def test_what_a_recall_cannot_be_read_from_is_named():
    """Operands that do not fit together, and a readout that hears the letter before as well."""
    tried = Case("mqar", {"kappa": 2, "vocab": 2, "write": "last"}, 0)
    flags = stream("Embed", [], table=rows([0, 0], [0, 0], [0, 0], [1, 1], [1, 1]))
    flag = stream("Embed", [], table=rows([0], [0], [0], [1], [1]))
    memory = lambda *inputs: stream("MemoryRead", list(inputs), policy="last", skip=0)
    tail = [memory(2, 3, 0, 12), stream("Linear", [13], matrices=[HEAD])]
    for wrong, words in [
        ([flags, *tail], "widths"),
        (
            [stream("Linear", [0], matrices=[rows([1, 1])]), memory(2, 3, 12), stream("Linear", [13], matrices=[HEAD])],
            "widths",
        ),
        ([flag, memory(2, 3, 0, 12), stream("Linear", [13, 4], matrices=[HEAD, HEAD])], "the present letter"),
    ]:
        circuit = {"streams": [*PARTS, *wrong], "output": len(PARTS) + len(wrong) - 1}
        assert words in tried.answers(circuit).reason


@pytest.mark.parametrize("distinct, most", [(True, 1.0), (False, 9.0)])
def test_a_key_stands_before_a_value_as_often_as_its_edges_let_it(distinct, most):
    edges = [
        {"from": "a", "to": "b", "tokens": [[1, 2]], "distinct": distinct},
        {"from": "b", "to": "a", "tokens": [[3, 4]], "distinct": False},
    ]
    language = parse({"language": {"tokens": 5, "start": "a", "edges": edges}, "length": 9})
    assert Sets(language, np.array([1, 2]), np.array([3, 4])).most_pairs()[0].tolist() == [most, most]


def test_a_latch_must_close_at_once():
    """Its flag is 1 at the first position, 0 from the fifth on, and falls between: it is open at no last position."""
    code = stream("Embed", [], table=rows([1, 0], [0, 1]))
    clock = [stream("Position", []), stream("Constant", [], values=[1.25])]
    falling = stream("Linear", [1, 2], matrices=[rows([-0.25]), rows([1])])
    latch = [stream("Relu", [3]), stream("Latch", [0, 4]), stream("Linear", [5], matrices=[diagonal(1)])]
    circuit = {"streams": [code, *clock, falling, *latch], "output": 6, "alphabet": ["a", "b"], "end": None}
    edges = [{"from": "a", "to": "a", "tokens": [[0, 1]], "distinct": False}]
    language = parse({"language": {"tokens": 2, "start": "a", "edges": edges}, "length": 9})
    for n in range(1, 6):
        assert "not open exactly" in prove_task(language, circuit, {"name": "keep-nth", "n": n}).reason


@pytest.mark.parametrize("n", [1, 5, 257, 65537])
@pytest.mark.parametrize("further", [0, 1, 4])
def test_a_position_is_kept_up_to_the_last_one_of_the_promise(n, further):
    """Where it is the last one, nothing is asked of the latch behind it; one position further it is closed."""
    params = {"n": n, "vocab": 2, "length": n, "max_length": n + further}
    assert Case("keep-nth", params, 0).answers().margin == 4
    longer = Case("keep-nth", params | {"length": n + 1, "max_length": n + 1 + further}, 0)
    assert "not open exactly" in longer.answers(claim={"name": "keep-nth", "n": n + 1}).reason


def test_a_blank_needs_silence():
    """Where nothing is stored under the present key, a memory that hears the key before does not answer the blank."""
    memory = stream("MemoryRead", [2, 3, 9], policy="sum", skip=0)
    silent = rows([1], [0], [0], [0], [0])
    output = stream("Linear", [12, 13], matrices=[rows([0, 0], [0, 0], [0, 0], [4, -4], [-4, 4]), silent])
    made = {"streams": [*PARTS, memory, stream("Constant", [], values=[1]), output], "output": 14}
    heard = copy.deepcopy(made)
    made["streams"][12]["inputs"][2] = 0
    edges = [{"from": "a", "to": "a", "tokens": [[0, 4]], "distinct": False}]
    language = parse({"language": {"tokens": 5, "start": "a", "edges": edges}, "length": 6})
    task = Recall(np.array([1, 2]), np.array([3, 4]), "only", 0)
    assert task.prove(Reader(World(language, EXACT), made)) > 0
    with pytest.raises(Rejected, match="other pairs are read"):
        task.prove(Reader(World(language, EXACT), heard))


def test_a_column_that_two_keys_write_leaks_to_both():
    """Orthogonal codes, of which the query reads the key before as well: often enough written, it drowns the answer."""
    code = stream("Embed", [], table=rows([0, 0], [1, 1], [1, -1], [0, 0], [0, 0]))
    before = stream("Shift", [len(PARTS)], k=1)
    query = stream("Linear", [len(PARTS), len(PARTS) + 1], matrices=[diagonal(4), diagonal(3)])
    memory = stream("MemoryRead", [2, len(PARTS) + 1, len(PARTS) + 2], policy="sum", skip=0)
    output = stream("Linear", [len(PARTS) + 3], matrices=[HEAD])
    circuit = {"streams": [*PARTS, code, before, query, memory, output], "output": len(PARTS) + 4}
    scores = evaluate(circuit, np.array([[1, 3, 1, 3, 2, 4, 1, 2]]))[0, -1]
    assert scores[3] > scores[4]
    tried = Case("mqar", {"kappa": 2, "vocab": 2, "write": "last"}, 0)
    assert not tried.prove(circuit, tried.claim | {"write": "sum"})


def test_bounds_of_readouts_hold_for_what_is_read():
    """Random small readouts: sides prove no more than all pairs, and these no more than any combination gives."""
    rng, proved = np.random.default_rng(0), 0
    tried = some(range(1500), 0.0017)
    for _ in tried:
        letters, lanes, answers = rng.integers(2, 5), rng.integers(1, 4), rng.integers(1, 4)
        answers = min(answers, letters)
        codes = rng.integers(-1, 2, size=(answers, lanes)).astype(float)
        head = rng.integers(-1, 2, size=(letters, lanes)).astype(float)
        ids = rng.permutation(letters)[:answers]
        if rng.integers(2):
            head[ids] = codes
        own = rng.integers(-1, 2, size=letters).astype(float) * rng.integers(2)
        heard = Heard(4.0, 4.0 + rng.integers(2), float(rng.integers(4)))
        made = Readout(head, own, ids, codes)
        every, bound = made.margin(heard), readout._MOST_CASES
        readout._MOST_CASES = 0
        try:
            sides = Readout(head, own, ids, codes).margin(heard)
            proved += every > 0
        except Rejected:
            sides = min(every, 0)
        finally:
            readout._MOST_CASES = bound
        assert sides <= every
        for _ in range(6):
            v, a = rng.integers(answers), heard.low + rng.integers(2) * (heard.high - heard.low)
            x = a * codes[v] + rng.choice([-1, 1]) * heard.others * codes[rng.integers(answers)]
            scores = own + head @ x
            rest = np.delete(scores, ids[v])
            assert not len(rest) or every <= scores[ids[v]] - rest.max()
    assert proved > len(tried) / 15


def test_a_letter_that_neither_counts_nor_resets_breaks_no_run():
    tried = Case("count-in-row", {"largest": 3}, 0)
    edges = [{"from": "any", "to": "any", "tokens": [[0, 2]], "distinct": False}]
    tried.language = parse({"language": {"tokens": tried.language.tokens, "start": "any", "edges": edges}, "length": 9})
    tried.rows = [np.array([[1, 2, 1]])]
    assert tried.lead() < 0 and not tried.prove()


@pytest.mark.parametrize(
    ("name", "params", "claimed", "said"),
    [
        (
            "shortest-path",
            {"nodes": 3, "lengths": 2},
            {"name": "shortest-path", "nodes": 5},
            "asks the task's question",
        ),
        ("copy", {"form": "delay", "n": 3, "vocab": 2}, {"name": "copy", "form": "pointer"}, "task needs letters @1"),
        ("keep-nth", {"n": 3, "vocab": 4, "max_length": 6}, {"name": "keep-nth", "n": 7}, "sequences have at most 6"),
    ],
)
def test_a_task_that_is_never_asked_is_not_proved(name, params, claimed, said):
    """Nothing is wrong where nothing is asked, and a file that says "every answer right" would mislead."""
    tried = Case(name, params, 0)
    assert tried.prove()
    assert said in tried.answers(claim=claimed).reason


@pytest.mark.parametrize("held", [[0, 2], [3, 4]], ids=["no value", "no key"])
def test_a_recall_of_what_never_comes_is_not_proved(held):
    tried = Case("mqar", {"kappa": 2, "vocab": 2}, 0)
    edges = [{"from": "a", "to": "a", "tokens": [held], "distinct": False}]
    language = parse({"language": {"tokens": 5, "start": "a", "edges": edges}, "length": 9})
    assert "which no sequence of the language holds" in prove_task(language, tried.circuit, tried.claim).reason


def test_a_recall_of_values_that_never_follow_a_key_is_not_proved():
    tried = Case("mqar", {"kappa": 2, "vocab": 2}, 0)
    edges = [{"from": "a", "to": state, "tokens": [[3, 4]], "distinct": False} for state in "ab"]
    edges += [{"from": "b", "to": "b", "tokens": [[1, 2]], "distinct": False}]
    language = parse({"language": {"tokens": 5, "start": "a", "edges": edges}, "length": 9})
    assert "asks for what stands after a key" in prove_task(language, tried.circuit, tried.claim).reason
