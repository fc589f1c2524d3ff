"""What paper B says of sizes: orders without a constant."""

from __future__ import annotations

import re

from constructions.papers import FREE_LUNCH

AFTER_COPY = f"{FREE_LUNCH}, after Theorem 2"
BEYOND = f"{FREE_LUNCH}, after Theorem 3, beyond its Assumption 2"
PLACES_OF_THE_INPUT = f"{FREE_LUNCH}, after Theorem 3, with places that depend on the input"
OUTSIDE = (BEYOND, PLACES_OF_THE_INPUT)  # of what the theorem does not say, it has no size
ONE_SIZE = f"{FREE_LUNCH}, after Theorem 3, for one size"  # of sizes that grow, an entry needs ever more entries

A_COLUMN = "at most a column"

ORDERS = {
    "Theorem 2": "size O(N) for a sequence of N tokens",
    "Theorem 3": "size O(T) for an answer of T tokens",
    "Theorem 4": "size O(m)",
}


def with_our_constant(theorem: str, columns: str) -> str:
    """Where a bound comes from: the order of the theorem that it names, and what has a column in our count."""
    (number,) = re.findall(r"Theorem \d", theorem)
    said = theorem.removeprefix(f"{FREE_LUNCH}, ")
    return f"{said}, {ORDERS[number]}; the constant is ours: {A_COLUMN} of the state for each {columns}"
