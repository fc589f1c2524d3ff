"""One circuit of the zoo in print: its source, its answers, its promise, its variables, an example."""

from __future__ import annotations

import inspect
from functools import partial
from textwrap import dedent
from typing import Any

from constructions.zoo.collection import chosen
from constructions.zoo.entry import Entry, FromPaper, Own
from constructions.zoo.labels import variables
from constructions.zoo.measured import told


def description(name: str) -> dict[str, Any]:
    """Everything that is known of a circuit without compiling it."""
    (entry, *others) = chosen([name])
    if others:
        raise ValueError(f"{name!r} means {1 + len(others)} circuits, and one is shown at a time: {entry.name}, …")
    circuit = entry.circuit()
    ((word, answers),) = entry.sequences(1, 0)
    (row,) = told([entry.name])
    return row | {
        "promise": row["promise"] or f"{circuit.token_language.description}; up to {circuit.max_length} tokens",
        "variables": [variable.to_json() for variable in variables(circuit)],
        "example": {"tokens": word, "answers": answers},
        "source": source(entry),
    }


def source(entry: Entry) -> str:
    """The code that makes the circuit: a function of the zoo, or a construction and its parameters."""
    if isinstance(entry, FromPaper):
        construction = entry.construction
        given = ", ".join(f"{name}={value!r}" for name, value in construction.params().items())
        return f"{type(construction).__module__}.{type(construction).__qualname__}({given})"
    assert isinstance(entry, Own)
    made = entry.make
    if isinstance(made, partial):
        code = dedent(inspect.getsource(made.func))
        return f"{code}\n{made.func.__name__}({', '.join(map(repr, made.args))})"
    return dedent(inspect.getsource(made))


def lines(found: dict[str, Any]) -> list[str]:
    """The same for people."""
    example = found["example"]
    pairs = zip(example["tokens"], example["answers"], strict=True)
    said = [f"{found['name']} ({found['family']}): {found['says']}", f"promise: {found['promise']}"]
    if found["blocks"] is not None:
        said.append("size: " + ", ".join(f"{name} {found[name]}" for name in ("blocks", "lanes", "memories", "lags")))
    said += [f"proof: {found['proved']}", "variables:"]
    said += [f"  {each['name']}: {each['kind']}, {each['line']}" for each in found["variables"]]
    said += ["example, each token with the answer behind it:"]
    said += ["  " + "  ".join(f"{token}→{'' if answer is None else answer}" for token, answer in pairs)]
    return [*said, "source:", found["source"].rstrip()]
