"""Letters that are led to a token that ends or pads the host's text are refused; the circuit's end may be its end."""

import dataclasses

import pytest

from compiler.graft import GraftError, branch, graft
from tests.graft.hosts import host, induction

SPECIAL = {"eos_token_id": 5, "pad_token_id": 7, "bos_token_id": 6}


@pytest.mark.parametrize("put", [graft, branch])
@pytest.mark.parametrize(("tokens", "words"), [({"a": 9, "b": 5}, "'b' to 5.*eos"), ({"a": 7}, "'a' to 7.*pad")])
def test_letters_on_special_tokens_are_refused(put, tokens, words):
    with pytest.raises(GraftError, match=words):
        put(host(**SPECIAL), induction("abc"), tokens)


def test_what_generate_ends_at_is_asked_too():
    model = host(eos_token_id=None, pad_token_id=None)
    model.generation_config.eos_token_id = [11, 12]
    with pytest.raises(GraftError, match="'a' to 12"):
        graft(model, induction("abc"), {"a": 12})


def test_the_circuits_end_may_be_the_hosts_end():
    circuit = dataclasses.replace(induction("abc"), end="b")
    model = host(eos_token_id=5, pad_token_id=5)
    assert graft(model, circuit, {"b": 5}).ids["b"] == 5
    with pytest.raises(GraftError, match="'a' to 5"):
        graft(model, circuit, {"a": 5})
