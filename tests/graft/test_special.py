"""Letters that are led to a token that ends or pads the host's text are refused; the circuit's end may be its end."""

import dataclasses

import pytest

from compiler.graft import GraftError, branch, graft
from tests.graft.hosts import VOCAB, host, induction

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


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("eos_token_id", VOCAB),
        ("pad_token_id", VOCAB + 2),
        ("eos_token_id", [3, VOCAB + 1]),
        ("suppress_tokens", [VOCAB]),
        ("bad_words_ids", [[2, VOCAB]]),
    ],
)
def test_an_id_that_a_letter_would_get_is_refused(name, held):
    """A letter would end a generation, be padding, or never be written."""
    model = host()
    setattr(model.generation_config, name, held)
    with pytest.raises(GraftError, match=f"the host's {name} is [0-9]+, but its embedding has {VOCAB} rows"):
        graft(model, induction("abc"))


@pytest.mark.parametrize("held", [VOCAB - 1, None, [0, 1]])
def test_ids_of_the_host_are_its_own(held):
    model = host()
    model.generation_config.eos_token_id = held
    assert set(graft(model, induction("abc")).ids.values()) == {VOCAB, VOCAB + 1, VOCAB + 2}


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({}, None),
        ({"num_beams": 1, "repetition_penalty": 1.0, "do_sample": False, "temperature": 0.7}, None),
        ({"suppress_tokens": [7]}, "suppress_tokens"),
        ({"no_repeat_ngram_size": 1}, "no_repeat_ngram_size"),
        ({"do_sample": True, "num_beams": 2}, "do_sample, num_beams"),
    ],
)
def test_settings_by_which_other_tokens_are_written_are_told(settings, named):
    model = host()
    for name, value in settings.items():
        setattr(model.generation_config, name, value)
    told = [w for w in graft(model, induction("abc")).report["warnings"] if "settings of generate()" in w]
    assert [f"have {named}, by which" in w for w in told] == [True] * (named is not None)
