"""One circuit of the zoo in print: its source, its answers, its promise, its variables, an example."""

from __future__ import annotations

from typing import Any

from constructions.zoo.collection import chosen
from constructions.zoo.labels import variables
from constructions.zoo.measured import told
from constructions.zoo.sources import oracle_source, source


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
        "oracle": oracle_source(entry),
    }


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
    said += ["source:", found["source"].rstrip(), "", "the same answers in plain Python:"]
    return [*said, found["oracle"].rstrip()]
