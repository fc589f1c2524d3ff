"""A polynomial in the values at the first three positions: 5·x₁²·x₃³ − x₂ + 7 (paper C).

Each variable is the number at one position, held by a latch; the formula is the code.
"""

from collections.abc import Sequence

from compiler import Int, Stream, latch, numbers, position

VALUES = numbers(Int(-3, 3), "x")


def polynomial(x: Stream) -> Stream:
    x1, x2, x3 = (latch(x, when=position() == i).named(f"x{i}") for i in (1, 2, 3))
    return 5 * x1**2 * x3**3 - x2 + 7


def answer(x: Sequence[int]) -> int:
    """At the third position and from there on."""
    return 5 * x[0] ** 2 * x[2] ** 3 - x[1] + 7
