"""What the functions of compiler.graft are given: what is none of it is said in one sentence."""

from functools import cache

import pytest

from compiler.graft import GraftError, branch, graft, reader, save
from tests.graft.hosts import VOCAB, host, induction

NO_MAPS = (5, 0, "ab", [("a", 3)], [])
NO_CIRCUITS = (None, 5, "mamba")
small = cache(host)


@pytest.mark.parametrize("tokens", NO_MAPS)
@pytest.mark.parametrize(
    "call",
    [
        lambda tokens: graft(small(), induction(), tokens),
        lambda tokens: branch(small(), induction(), tokens),
        lambda tokens: reader(induction(), tokens, VOCAB),
    ],
    ids=["graft", "branch", "reader"],
)
def test_a_token_map_is_a_mapping(call, tokens):
    with pytest.raises(GraftError, match="^the token map is .*, and a mapping such as {'a': 3} is needed.$"):
        call(tokens)


@pytest.mark.parametrize("circuit", NO_CIRCUITS)
@pytest.mark.parametrize(
    "call",
    [
        lambda circuit: graft(small(), circuit),
        lambda circuit: branch(small(), circuit, {"a": 3}),
        lambda circuit: reader(circuit, {"a": 3}, VOCAB),
    ],
    ids=["graft", "branch", "reader"],
)
def test_what_is_grafted_is_a_circuit(call, circuit):
    with pytest.raises(TypeError, match="^what is grafted is .*, and a Circuit is needed$"):
        call(circuit)


def test_what_is_saved_is_a_grafted_model(tmp_path):
    with pytest.raises(TypeError, match="what is saved is None"):
        save(None, tmp_path / "out")
    assert not (tmp_path / "out").exists()
