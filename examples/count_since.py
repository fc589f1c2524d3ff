"""A circuit that is in no paper: how many a's stood since the last b, as the next token.

Run it with `python examples/count_since.py`: it compiles the circuit to real Mamba blocks
and checks every string of up to eight letters against plain Python.
"""

from itertools import product

import numpy as np
import torch

from compiler import Alphabet, Circuit, InputLanguage, Tokens, bare, compile, count, readout_integer

LETTERS = Alphabet.of("a", "b", "c", *(str(n) for n in range(9)))


def circuit(max_length: int = 8) -> Circuit:
    """The count since the last b (since the start, if there is none), read out as the token 0…8."""
    x = Tokens(LETTERS)
    since = count(x.is_in("a"), reset=x.is_in("b"))
    answer = readout_integer(since, LETTERS, {str(n): n for n in range(9)})
    language = InputLanguage.of(LETTERS, "any", [("any", "any", ("a", "b", "c"))], max_length, "strings of a, b and c")
    return Circuit("count-since", answer, language)


def plain_python(string: tuple[str, ...]) -> int:
    return string[len(string) - string[::-1].index("b") :].count("a") if "b" in string else string.count("a")


def main() -> None:
    model = bare(compile(circuit(), "mamba"))
    checked = 0
    for length in range(1, 9):
        strings = list(product("abc", repeat=length))
        tokens = torch.tensor([[LETTERS.index(c) for c in string] for string in strings])
        with torch.no_grad():
            answers = model(tokens)[:, -1].argmax(-1)
        expected = [LETTERS.index(str(plain_python(string))) for string in strings]
        assert np.array_equal(answers.numpy(), expected)
        checked += len(strings)
    print(
        f"right on all {checked:,} strings of up to 8 letters; {len(model.blocks)} blocks of "
        f"{type(model.blocks[0]).__name__}"
    )


if __name__ == "__main__":
    main()
