"""Table 1 of paper B with measured numbers: state, parameters and time per token as the answer grows to T tokens.

Four built models: Fibonacci modulo q (2-local: Theorem 4, a state that no T moves); edit distance row by row (columns
and channels that grow with √T each); and the COPY of Theorem 2 that the proof of Theorem 3 uses, one number for each
earlier place (linear in T on Mamba-2, which is measured; on Mamba quadratic, truth copy-state), with one column for
each, or with places in two digits. Beside them Transformers of stated sizes: their key-value cache, and of the smaller
one the time of a token, from the matrices of its layers to its scores.

The state is counted as d_inner·d_state and the window of the convolution (of Mamba-2 also that of B and C), for every
block at its least sizes, whether an entry is used or not. Each row says how its sizes were found: "measured" on a
module that was built, "computed" where a dense module of that size fits no machine, by the polynomial through three
built ones, which must give the fourth exactly; "stated" of a Transformer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import torch

from compiler import Alphabet, Circuit, InputLanguage, Tokens, bare, compile, memory, position, readout_integer
from compiler.artifact.model import Stack
from compiler.artifact.package import bare_sizes
from compiler.runtime.streaming import advance
from constructions.copy_dp.words import EditDistance

MODULUS = 5
STEPS = 32  # tokens of which the time is taken
CHUNK = 4096
TRANSFORMERS = {"GPT-2 small (12 × 768)": (12, 768, 12, 124e6), "Llama-2 7B (32 × 4096)": (32, 4096, 32, 6.74e9)}
LOCAL_LENGTHS = (100, 1_000, 10_000, 100_000)
EDIT_LENGTHS = (8, 16, 32, 40, 48, 56, 98)  # of 10,098 tokens; scores of much longer words leave float32
PLACE_LENGTHS = (64, 128, 256, 512)
DIGIT_LENGTHS = (512, 1024, 2048)  # the sums of two digits leave float32 from 3,323 places on
GPT2_VOCABULARY = 50_257
ATTENTION_LENGTHS = (1_000, 10_000, 100_000)
COMPUTED_PLACES = (1_000, 10_000, 100_000)
COMPUTED = ("state", "parameters", "nonzero")


def fibonacci(length: int) -> tuple[Circuit, str]:
    """The sum of the last two tokens modulo q, for a chain of so many tokens."""
    alphabet = Alphabet.of(*(str(i) for i in range(MODULUS)))
    x = Tokens(alphabet).number({str(i): i for i in range(MODULUS)}, name="x")
    scores = readout_integer((x + x.shift(1)) % MODULUS, alphabet, {str(i): i for i in range(MODULUS)})
    return Circuit("fibonacci", scores, InputLanguage.everything(alphabet, length)), "mamba"


def places(length: int) -> tuple[Circuit, str]:
    """The token half of the length ago, from a memory with one column for each place."""
    alphabet = Alphabet.of(*(str(i) for i in range(MODULUS)))
    x = Tokens(alphabet).number({str(i): i for i in range(MODULUS)}, name="x")
    here = position()
    held = memory.write(key=(here - 1).one_hot(length), value=x).read((here - 1 - length // 2).one_hot(length))
    scores = readout_integer(held, alphabet, {str(i): i for i in range(MODULUS)})
    return Circuit("places", scores, InputLanguage.everything(alphabet, length)), "mamba2"


def rows(
    local: tuple[int, ...] = LOCAL_LENGTHS,
    edit: tuple[int, ...] = EDIT_LENGTHS,
    by_place: tuple[int, ...] = PLACE_LENGTHS,
    attention: tuple[int, ...] = ATTENTION_LENGTHS,
    timed: bool = True,
    longest: int = 100_000,
    digits: tuple[int, ...] = DIGIT_LENGTHS,
) -> Iterator[dict[str, Any]]:
    """One row for each model and length: state and parameters (numbers), seconds per token at the end of T tokens.

    timed: whether time is taken; else it is None. longest: of the computed rows, for which four places are needed.
    """
    for length in local:
        yield _built("Fibonacci mod 5 (Theorem 4)", length, *fibonacci(length), timed)
    for words in (EditDistance(length=letters) for letters in edit):
        yield _built("edit distance (by rows)", words.longest(), words.circuit(), "mamba", timed)
    built = [_built("every place (Theorem 2)", length, *places(length), timed, length) for length in by_place]
    yield from built
    for length in digits:
        yield _built("every place, in two digits", length, *places(length), timed)
    yield from _computed(built, by_place, [(n, n) for n in COMPUTED_PLACES if n <= longest])
    for name, (layers, width, heads, parameters) in TRANSFORMERS.items():
        for length in attention:
            seconds = transformer_seconds(length, layers, width, heads) if timed and width < 1024 else None
            yield {
                "model": name,
                "length": length,
                "how": "stated",
                "state": 2 * layers * width * length,
                "parameters": int(parameters),
                "nonzero": int(parameters),
                "seconds": seconds,
            }


def _built(
    name: str, length: int, circuit: Circuit, target: str, timed: bool, columns: int | None = None
) -> dict[str, Any]:
    """The row of a module; columns: how many it may have, where that is more than CUDA kernels take."""
    made = compile(circuit, target, max_d_state=columns)
    stack = bare(made)
    state = sum(size.carried(size.d_conv) for size in bare_sizes(made))
    return {
        "model": name,
        "length": length,
        "how": "measured",
        "state": state,
        "parameters": sum(p.numel() for p in stack.parameters()),
        "nonzero": sum(int(p.count_nonzero()) for p in stack.parameters()),
        "seconds": token_seconds(stack, length, circuit.alphabet.size) if timed else None,
    }


def _computed(
    built: Sequence[dict[str, Any]], sizes: Sequence[int], wanted: Sequence[tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """Rows for (size, length) pairs, by the parabolas through three of the last four built rows; none for fewer.

    ArithmeticError where the fourth is not on the parabola through the others.
    """
    built, sizes = built[-4:], sizes[-4:]
    if len(built) < 4:
        return
    for size, length in wanted:
        row = {"model": built[0]["model"], "length": length, "how": "computed", "seconds": None}
        for what in COMPUTED:
            known = [(n, row[what]) for n, row in zip(sizes, built, strict=True)]
            for n, number in [*known[3:], (size, None)]:
                row[what] = _parabola(known[:3], n)
                if number not in (None, row[what]):
                    raise ArithmeticError(f"{row['model']}: {what} is no parabola: {number}, not {row[what]}, at {n}")
        yield row


def _parabola(points: Sequence[tuple[int, int]], at: int) -> int:
    """The value there of the parabola through three points, which must be a whole number."""
    value = Fraction(0)
    for i, (x, y) in enumerate(points):
        term = Fraction(y)
        for j, (other, _) in enumerate(points):
            term *= Fraction(at - other, x - other) if i != j else 1
        value += term
    if value.denominator != 1:
        raise ArithmeticError(f"a size of {value} at {at} is no whole number")
    return int(value)


@torch.no_grad()
def token_seconds(stack: Stack, length: int, vocabulary: int) -> float:
    """Seconds per token, one after the other, at the end of a sequence of this length."""
    tokens = torch.randint(0, vocabulary, (1, length), generator=torch.Generator().manual_seed(0))
    caches = stack.initial_state(1)
    for start in range(0, max(1, length - STEPS), CHUNK):
        _, caches = advance(stack, tokens[:, start : min(start + CHUNK, max(1, length - STEPS))], caches)
    state = [caches]

    def step() -> None:
        _, state[0] = advance(stack, tokens[:, -1:], state[0])

    return _seconds(step)


@torch.no_grad()
def transformer_seconds(length: int, layers: int, width: int, heads: int) -> float:
    """Seconds that a Transformer takes for a token behind `length` others (float32; norms and biases are left out).

    `layers` times one layer: queries, keys and values, attention to a cache of that length, and a network of four
    times the width; then the scores of GPT-2's vocabulary.
    """
    keys, values = (torch.ones(heads, length, width // heads) for _ in range(2))
    shapes = (3 * width, width), (width, width), (4 * width, width), (width, 4 * width)
    qkv, out, up, down = (torch.ones(*shape) for shape in shapes)
    scores, token = torch.ones(GPT2_VOCABULARY, width), torch.zeros(width)

    def layer() -> None:
        query = (qkv @ token)[:width].view(heads, 1, -1)
        attended = torch.softmax(query @ keys.transpose(1, 2), dim=-1) @ values
        x = token + out @ attended.flatten()
        x + down @ torch.nn.functional.gelu(up @ x)

    return layers * _seconds(layer) + _seconds(lambda: scores @ token)


def _seconds(run: Callable[[], object]) -> float:
    """The median of several runs: other work on the machine makes single ones slower."""
    run()
    taken = []
    for _ in range(STEPS):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return sorted(taken)[STEPS // 2]


def growth(table: list[dict[str, Any]]) -> dict[str, float]:
    """For each model of several lengths the exponent g of state ~ T^g between its shortest and longest row."""
    from math import log

    found = {}
    for name in dict.fromkeys(row["model"] for row in table):
        of = sorted((row for row in table if row["model"] == name), key=lambda row: row["length"])
        if len({row["length"] for row in of}) > 1:
            found[name] = log(of[-1]["state"] / of[0]["state"]) / log(of[-1]["length"] / of[0]["length"])
    return found


def draw_costs(table: list[dict[str, Any]], path: Any) -> None:
    """State against T, and the time of a token against T."""
    from matplotlib.figure import Figure

    from constructions.pictures.page import save

    figure = Figure(figsize=(9, 4.4), dpi=150, layout="constrained")
    models = list(dict.fromkeys(row["model"] for row in table))
    for axes, key, what in zip(figure.subplots(1, 2), ("state", "seconds"), ("numbers", "seconds"), strict=True):
        for number, name in enumerate(models):
            mine = [row for row in table if row["model"] == name and row["how"] != "computed"]
            points = [(row["length"], row[key]) for row in mine if row[key] is not None]
            if points:
                axes.loglog(*zip(*points, strict=True), f"C{number}o-", label=name)
            found = [(row["length"], row[key]) for row in table if row["model"] == name and row["how"] == "computed"]
            if found and key == "state":
                axes.loglog(*zip(*found, strict=True), f"C{number}x", label="… computed")
        axes.set_xlabel("T, tokens of the answer")
        axes.set_ylabel(f"{'state' if key == 'state' else 'time per token'}, {what}")
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4, fontsize=8)
    save(figure, path)
