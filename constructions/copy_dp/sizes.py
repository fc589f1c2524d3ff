"""What paper B says of sizes: orders without a constant."""

from __future__ import annotations

ORDERS = {
    "Theorem 2": "size O(N) for a sequence of N tokens",
    "Theorem 3": "size O(T) for an answer of T tokens",
    "Theorem 4": "size O(m)",
}


def with_our_constant(theorem: str, columns: str) -> str:
    """Where a bound comes from: the order of the theorem, which ends the name, and what has a column in our count."""
    number = theorem[-len("Theorem 2") :]
    return f"{number}, {ORDERS[number]}; the constant is ours: a column of the state for each {columns}"
