"""What the operands of an operation are: held once, before meaning and task read the circuit each in a way of its own.

The meaning reads lane by lane, the tasks in whole arrays. Where the widths of operands are others than an operation
takes, the one would read the first lane, and the other all of them: so such a circuit is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from verify.checker.budget import shape_of, width_of
from verify.checker.formats import Rejected

_OF_ONE_LANE = {"OneHotOf", "Lookup", "Count"}
_TOGETHER = {"Compare", "SameSymbol", "And", "Or", "Min", "Max", "Multiply", "Dot", "ScaledSum"}


def check_operands(circuit: dict) -> None:
    """Rejected with the first stream whose operands, bounds or table are none that its operation takes."""
    streams, widths, letters = circuit["streams"], list[int](), circuit["promise"]["language"]["tokens"]
    for i, stream in enumerate(streams):
        read = [widths[k] for k in stream["inputs"]]
        if not _fit(stream["operation"], stream["attributes"], read):
            raise Rejected(f"circuit.json: streams[{i}] has operands of {_listed(read)} lanes, not such as it takes")
        widths.append(width_of(stream["type"], circuit["codebooks"]))
        if stream["operation"] == "Embed" and (rows := shape_of(stream["attributes"]["table"])[0]) != letters:
            raise Rejected(f"circuit.json: streams[{i}] has a table of {rows} rows for {letters} letters")
        if stream["operation"] == "Clip" and _low_above_high(stream["attributes"]):
            raise Rejected(f"circuit.json: streams[{i}] clips to a lower end that is above the upper one")
        if stream["operation"] == "Decide" and streams[stream["inputs"][0]]["operation"] == "Decide":
            raise Rejected(f"circuit.json: streams[{i}] decides over scores that rules have decided")


def _fit(operation: str, attributes: dict, read: Sequence[int]) -> bool:
    """read: the lanes of each operand."""
    if operation in _OF_ONE_LANE and not attributes.get("symbols"):
        return set(read) <= {1}
    if operation in _TOGETHER:
        return set(read) <= {1, max(read, default=1)}
    if operation == "Select" and len(read) == 3:
        return read[1] == read[2] and read[0] in (1, read[1])
    return True


def _low_above_high(attributes: dict) -> bool:
    return Fraction(attributes["lo"]) > Fraction(attributes["hi"])


def _listed(read: Sequence[int]) -> str:
    return ", ".join(map(str, read))
