"""The core circuits: what each asks of a runtime, and tokens that ask it at nearly every position."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.codebook import bits, signs
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout, readout_integer, readout_nearest, readout_one_hot
from compiler.language.reals import exceeds
from compiler.language.source import Tokens
from compiler.language.stream import constant
from compiler.language.words import count, fading_sum, latch, minimum, permute


@dataclass(frozen=True)
class Core:
    """A circuit and how its tokens are drawn.

    asks: what a runtime must get right; build: the circuit for sequences of this length; draw: (length,) token ids.
    targets: the mixers that it compiles for. fades: whether a state fades, so that its scores are exact and it is not.
    hidden: whether no states are compared, for another reason: those of the delta rule are told by no one else.
    """

    name: str
    asks: str
    build: Callable[[int], Circuit]
    draw: Callable[[np.random.RandomState, int], np.ndarray]
    targets: tuple[str, ...] = ("mamba", "mamba2")
    fades: bool = False
    hidden: bool = False


def _over(alphabet: Alphabet, letters: str | tuple[str, ...], length: int) -> InputLanguage:
    return InputLanguage.of(alphabet, "any", [("any", "any", letters)], length, "every sequence of its input tokens")


def induction(length: int) -> Circuit:
    alphabet = Alphabet.of("×", v=6)
    x, book = Tokens(alphabet), bits(6)
    token = x.one_hot("v", name="token")
    recalled = memory.write(token.shift(1), x.code("v", book, "value"), policy="last", name="recalled").read(token)
    return Circuit("induction", readout_nearest(recalled, book, alphabet, "v", "×"), _over(alphabet, "v", length))


def delay(length: int) -> Circuit:
    """The token three positions back, which only the oldest tap of a convolution of four sees."""
    alphabet = Alphabet.of(v=4)
    before = Tokens(alphabet).one_hot("v", name="token").shift(3)
    return Circuit("delay", readout_one_hot(before, alphabet, "v"), _over(alphabet, "v", length))


TIMES = 1000


def absolute_time(length: int) -> Circuit:
    most = min(length, TIMES)
    alphabet = Alphabet.of(v=3, t=[f"t{i}" for i in range(1, most + 1)])
    time = minimum(constant(1).cumsum().named("time"), most)
    logits = readout_integer(time, alphabet, {f"t{i}": i for i in range(1, most + 1)})
    return Circuit("absolute-time", logits, _over(alphabet, "v", length))


def count_since(length: int) -> Circuit:
    alphabet = Alphabet.of("a", "b", "c", n=[str(n) for n in range(length + 1)])
    x = Tokens(alphabet)
    since = count(x.is_in("a"), reset=x.is_in("b"))
    logits = readout_integer(since, alphabet, {str(n): n for n in range(length + 1)})
    return Circuit("count-since", logits, _over(alphabet, ("a", "b", "c"), length))


PLACES = 5


def swaps(length: int) -> Circuit:
    """A state on one of five places, which swaps of neighbours move: reflections, of which none may lose a bit."""
    alphabet = Alphabet.of("rest", s=PLACES - 1, p=PLACES)
    state = permute(0, Tokens(alphabet).one_hot("s", name="swap"))
    return Circuit(
        "swaps", readout_one_hot(state, alphabet, "p"), _over(alphabet, ("rest", *alphabet.tokens[1:PLACES]), length)
    )


def overwritten(length: int) -> Circuit:
    """What stood last after the present token: places of a state that are written over."""
    alphabet = Alphabet.of(v=6)
    token = Tokens(alphabet).one_hot("v", name="token")
    held = memory.write(token.shift(1), token, policy="last", name="held").read(token)
    return Circuit("overwritten", readout_one_hot(held, alphabet, "v"), _over(alphabet, "v", length))


TWELVE_BITS = (2889, 2049, 2731, 2445, 2603, 7)


def kept_numbers(length: int) -> Circuit:
    """The last number that stood before an h: odd numbers of twelve bits, which neither half nor bfloat16 holds."""
    alphabet = Alphabet.of("h", w=[f"w{n}" for n in TWELVE_BITS])
    x = Tokens(alphabet)
    kept = latch(x.number({f"w{n}": n for n in TWELVE_BITS}), when=~x.is_in("h"))
    return Circuit("kept-numbers", readout_integer(kept, alphabet, {f"w{n}": n for n in TWELVE_BITS}),
                   _over(alphabet, alphabet.tokens, length))  # fmt: skip


KEYS = 5


def codes(length: int) -> Circuit:
    """Values added up under keys, a column of state for each: a key holds what stood after it."""
    alphabet = Alphabet.of("×", k=KEYS, v=6)
    x, book = Tokens(alphabet), signs(6)
    kept = memory.write(x.one_hot("k", name="key").shift(1), x.code("v", book, "value"), policy="sum", name="kept")
    found = kept.read(x.one_hot("k", name="query"))
    return Circuit("codes", readout(found, book, alphabet, "v"), _over(alphabet, alphabet.tokens[1:], length))


WIDE = (1023, 513, 767, 685, 1001, 3)


def wide_integers(length: int) -> Circuit:
    """The last number that stood before an h: odd numbers of ten bits, which no short float holds."""
    alphabet = Alphabet.of("h", w=[f"w{n}" for n in WIDE])
    x = Tokens(alphabet)
    value = x.number({f"w{n}": n for n in WIDE})
    kept = latch(value, when=~x.is_in("h"))
    return Circuit("wide-integers", readout_integer(kept, alphabet, {f"w{n}": n for n in WIDE}),
                   _over(alphabet, alphabet.tokens, length))  # fmt: skip


ULPS = 4  # of float32, by which each step of a state that fades may be off


def half_life(length: int) -> Circuit:
    """2 up to the last step at which a state is more than half of what it was, and 0 from the next on.

    The state is compared with what it is at these two steps, less and more by a few units in the last place for each
    step: an exp that is off by 1e-6 is seen, whichever way it is off. Outside of its gap the comparison is exact.
    """
    steps = 3 * length // 4
    decay = Fraction(math.exp(-math.log(2) / steps))
    before, after = decay**steps, decay ** (steps + 1)
    margin = before * steps * ULPS * Fraction(1, 1 << 24)
    gap = Fraction(1, 1 << math.ceil(math.log2(4 / (before - after))))
    down = lambda value: Fraction(math.floor(value * (1 << 24)), 1 << 24)
    alphabet = Alphabet.of("begin", "x", "y", "0", "1", "2")
    left = fading_sum(Tokens(alphabet).is_in("begin", name="begin"), decay)
    kept = exceeds(left, down(before - margin - gap), gap) + exceeds(
        left, down(after + margin) + Fraction(1, 1 << 24), gap
    )
    logits = readout_integer(kept, alphabet, {"0": 0, "1": 1, "2": 2})
    edges = [("start", "fading", "begin"), ("fading", "fading", ("x", "y"))]
    return Circuit("half-life", logits, InputLanguage.of(alphabet, "start", edges, length, "begin, and any x and y"))


def _once(random: np.random.RandomState, length: int) -> np.ndarray:
    return np.append(0, random.randint(1, 3, size=length - 1))


def _mixed(first: int, middle: int, stop: int, share: float) -> Callable[[np.random.RandomState, int], np.ndarray]:
    """Ids of first … middle − 1 with this share, of middle … stop − 1 with the rest."""

    def draw(random: np.random.RandomState, length: int) -> np.ndarray:
        lower, upper = random.randint(first, middle, size=length), random.randint(middle, stop, size=length)
        return np.where(random.random_sample(length) < share, lower, upper)

    return draw


DELTA, OVERWRITES = ("gated-deltanet",), ("gated-deltanet", "gated-deltanet-qwen")
OFTEN = (0.8, 0.1, 0.1)  # counts grow long before they begin anew

CORES = {
    core.name: core
    for core in (
        Core("induction", "a memory that is read at every position", induction, lambda r, n: r.randint(1, 7, size=n)),
        Core("delay", "every tap of the convolution", delay, lambda r, n: r.randint(0, 4, size=n)),
        Core("absolute-time", "one step kept at every position, for ever", absolute_time, _mixed(0, 2, 3, 0.7)),
        Core("count-since", "a count that begins anew", count_since, lambda r, n: r.choice(3, p=OFTEN, size=n)),
        Core("wide-integers", "all bits of an integer of ten", wide_integers, _mixed(0, 1, 7, 0.7)),
        Core("codes", "sums in several columns of state", codes, _mixed(1, 1 + KEYS, 1 + KEYS + 6, 0.7)),
        Core("swaps", "reflections", swaps, lambda r, n: r.randint(0, PLACES, size=n), DELTA, hidden=True),
        Core(
            "overwritten",
            "places that are written over",
            overwritten,
            lambda r, n: r.randint(0, 6, size=n),
            OVERWRITES,
            hidden=True,
        ),
        Core(
            "kept-numbers",
            "all bits of an integer of twelve",
            kept_numbers,
            _mixed(0, 1, 7, 0.7),
            OVERWRITES,
            hidden=True,
        ),
        Core("half-life", "exp to a few units in the last place", half_life, _once, ("mamba",), fades=True),
    )
}
