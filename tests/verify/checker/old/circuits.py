"""Circuits that the compiler once turned into wrong weights without a word: one for each hole, by its number.

The weights in the folders beside this file were made of them by the compiler of commit 324d27f, before the holes were
mended, so that the checker is held against real mistakes. To make them again: check that commit out, put its root and
this folder on PYTHONPATH and run `python circuits.py weights OUT`; then, with today's sources on PYTHONPATH,
`python circuits.py data OUT`, which adds the circuit and the promise as today's files state them.
"""

import json
import sys
from pathlib import Path

from compiler import Alphabet, Circuit, InputLanguage, Stream, Tokens, balanced, concatenate, constant, memory, position
from compiler.language import operations as ops

ABC = Alphabet.of("a", "b", "c")
X = Tokens(ABC)
BOOK = balanced(3)


def _over(name, stream, length):
    return Circuit(name, stream, InputLanguage.everything(ABC, length))


def numeric_key():  # relu(key + when - 1) for key * when: 4 where 0 is right
    key, when = X.is_in(["a"]).cumsum().named("key"), X.is_in(["b"])
    stored = X.is_in(["a", "c"]).shift(1)
    return _over("numeric-key", memory.write(key, stored, when=when, policy="sum").read(constant(1)), 6)


def thousands():  # counted in steps of 1000 = 8 * 125: wrong from position 26,844 on
    return _over("thousands", X.number({"a": 1000, "c": 5000}, "amount").cumsum(), 65536)


def threes():  # the same in bfloat16
    return _over("threes", 3 * position(), 256)


def folded():  # k * 2^60 + k rounds to k * 2^60 in float64: 0 for k
    k = X.number({"a": 1}, "k")
    return _over("folded", concatenate((k * 2.0**60 + k) - k * 2.0**60 > 0, k.shift(1)), 24)


def tenths():  # 0.1 was compared with the dtype after it had been rounded to it
    return _over("tenths", 0.1 * X.is_in(["a"]).cumsum(), 24)


def below_zero():  # special tokens scored 0, and every letter less
    score = X.number({"a": -1, "b": -2, "c": -3}, "score")
    return _over("below-zero", concatenate(score.shift(1) - 1, score, score - 1), 24)


def no_codeword():  # twice a codeword is none: 0 is right, and the module said 1
    code = X.code(["a", "b", "c"], BOOK)
    return _over("no-codeword", Stream(ops.Decode(ops.exact_matrix(BOOK.words)), (code + code.shift(1),)), 24)


CIRCUITS = {
    "1-numeric-key": (numeric_key, "float32"),
    "2-thousands": (thousands, "float32"),
    "2-threes": (threes, "bfloat16"),
    "3-folded": (folded, "float32"),
    "4-tenths": (tenths, "float32"),
    "5-below-zero": (below_zero, "float32"),
    "6-overflow": (below_zero, "float32"),
    "8-no-codeword": (no_codeword, "float32"),
}


def weights(out: Path) -> None:
    """With the old compiler on the path."""
    import torch
    from compiler.compile import compile
    from compiler.package import language_model
    from safetensors.torch import save_file

    for name, (build, dtype) in CIRCUITS.items():
        model = language_model(compile(build(), "mamba", dtype))
        if name == "6-overflow":  # one finite weight of a channel that nothing reads: every logit is NaN
            model.tensors["backbone.layers.0.mixer.A_log"][-1, 0] = 200.0
        (out / name).mkdir(parents=True, exist_ok=True)
        tensors = {k: v.to(getattr(torch, dtype)).contiguous() for k, v in model.tensors.items()}
        save_file(tensors, out / name / "model.safetensors", {"format": "pt"})
        (out / name / "config.json").write_text(json.dumps(model.config | {"dtype": dtype}))


def data(out: Path) -> None:
    """With today's compiler on the path."""
    from compiler.language.data import language_to_data, to_data

    for name, (build, dtype) in CIRCUITS.items():
        circuit = build()
        (out / name / "circuit.json").write_text(json.dumps(to_data(circuit)))
        promise = language_to_data(circuit.language) | {"dtype": dtype}
        (out / name / "construction.json").write_text(json.dumps({"promise": promise}))


if __name__ == "__main__":
    {"weights": weights, "data": data}[sys.argv[1]](Path(sys.argv[2]))
