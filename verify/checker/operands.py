"""What the operands of an operation are: held once, before meaning and task read the circuit each in a way of its own.

The meaning reads lane by lane, the tasks in whole arrays. Where the widths of operands are others than an operation
takes, the one would read the first lane, and the other all of them: so such a circuit is refused. Streams that no score
is made of are held to the same: a circuit that means nothing in one place means nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from verify.checker.budget import shape_of, width_of
from verify.checker.formats import Rejected

_OF_ONE_LANE = {"OneHotOf", "Lookup", "Count"}
_TOGETHER = {"Compare", "SameSymbol", "And", "Or", "Min", "Max", "Multiply", "Dot", "ScaledSum"}
_TAKES: dict[str, int | range] = {
    **dict.fromkeys(("Embed", "Constant", "Position"), 0),
    **dict.fromkeys(("Shift", "Lti", "Relu", "Clip", "Not", "Lookup", "FloorDivide", "Modulo", "OneHotOf"), 1),
    **dict.fromkeys(("Decode", "Cumsum", "FadingSum"), 1),
    **dict.fromkeys(("Compare", "SameSymbol", "And", "Or", "Min", "Max", "Multiply", "Dot", "Latch", "SumWhere"), 2),
    **dict.fromkeys(("Count", "RunningMax", "SelectiveSum"), 2),
    **dict.fromkeys(("Select", "ScaledSum", "FadingMemory"), 3),
    "MemoryRead": range(3, 5),
    "Permute": range(1, 3),
}
"""How many operands an operation has; those of maps and rules are as many as their attributes say."""
Read = Sequence[int]  # the lanes of each operand


def check_operands(circuit: dict) -> None:
    """Rejected with the first stream whose operands, bounds or table are none that its operation takes."""
    streams, widths, letters = circuit["streams"], list[int](), circuit["promise"]["language"]["tokens"]
    for i, stream in enumerate(streams):
        read, where = [widths[k] for k in stream["inputs"]], f"circuit.json: streams[{i}]"
        wide = width_of(stream["type"], circuit["codebooks"])
        _check_count(where, stream["operation"], stream["attributes"], len(read))
        if not _fit(stream["operation"], stream["attributes"], read):
            raise Rejected(f"{where} has operands of {_listed(read)} lanes, not such as it takes")
        widths.append(wide)
        if stream["operation"] == "Embed" and (rows := shape_of(stream["attributes"]["table"])[0]) != letters:
            raise Rejected(f"{where} has a table of {rows} rows for {letters} letters")
        if stream["operation"] == "Clip" and _low_above_high(stream["attributes"]):
            raise Rejected(f"{where} clips to a lower end that is above the upper one")
        if stream["operation"] == "Decide" and streams[stream["inputs"][0]]["operation"] == "Decide":
            raise Rejected(f"{where} decides over scores that rules have decided")
        makes = _MAKES.get(stream["operation"])
        made = wide if makes is None else makes(stream["attributes"], read)
        if made != wide:
            raise Rejected(f"{where} makes {made} lanes, and its type says {wide}")


def _check_count(where: str, operation: str, attributes: dict, found: int) -> None:
    """Rejected where there are fewer or more operands than the operation has."""
    takes = _TAKES.get(operation)
    if operation in ("Linear", "Emit"):
        takes = len(attributes["matrices"])
    if operation == "Decide":
        takes = 1 + len(attributes["tokens"])
    if takes is not None and (found not in takes if isinstance(takes, range) else found != takes):
        told = f"{takes[0]} or {takes[-1]}" if isinstance(takes, range) else takes
        raise Rejected(f"{where} is a {operation} of {found} operands, and it takes {told}")
    if operation in ("Linear", "Emit", "Decide") and not attributes.get("matrices", attributes.get("tokens")):
        raise Rejected(f"{where} is a {operation} without any {'rule' if operation == 'Decide' else 'matrix'}")


def _fit(operation: str, attributes: dict, read: Read) -> bool:
    """Whether the operation takes operands of these widths."""
    if operation in _OF_ONE_LANE and not attributes.get("symbols"):
        return set(read) <= {1}
    if operation == "Lookup":
        return read[0] == len(attributes["table"])
    if operation in _TOGETHER:
        return set(read) <= {1, max(read, default=1)}
    if operation == "Select":
        return read[1] == read[2] and read[0] in (1, read[1])
    if operation in ("Linear", "Emit"):
        shapes = [shape_of(matrix) for matrix in attributes["matrices"]]
        return [width for _, width in shapes] == list(read) and len({height for height, _ in shapes}) == 1
    if operation == "Decode":
        return shape_of(attributes["words"])[1] == read[0]
    if operation == "MemoryRead":
        return read[1] == read[2] and set(read[3:]) <= {1}
    if operation == "Permute":
        return read[0] == len(attributes["pairs"]) and set(read[1:]) <= {attributes["n"]}
    if operation == "RunningMax":
        return read[1] in (1, read[0])
    return operation != "Decide" or set(read[1:]) == {1}


def _widest(attributes: dict, read: Read) -> int:
    return max(read)


def _first(attributes: dict, read: Read) -> int:
    return read[0]


def _one(attributes: dict, read: Read) -> int:
    return 1


def _each_of_each(attributes: dict, read: Read) -> int:
    return read[0] * read[1]


_MAKES: dict[str, Callable[[dict, Read], int]] = {
    "Embed": lambda attributes, read: shape_of(attributes["table"])[1],
    "Constant": lambda attributes, read: len(attributes["values"]),
    **dict.fromkeys(("Linear", "Emit"), lambda attributes, read: shape_of(attributes["matrices"][0])[0]),
    **dict.fromkeys(("Shift", "Lti", "Relu", "Clip", "Not", "FloorDivide", "Modulo", "Cumsum", "FadingSum"), _first),
    **dict.fromkeys(("MemoryRead", "FadingMemory", "SelectiveSum", "RunningMax", "Decide"), _first),
    **dict.fromkeys(("Compare", "And", "Or", "Min", "Max", "Multiply", "ScaledSum"), _widest),
    **dict.fromkeys(("Position", "SameSymbol", "Dot", "Lookup", "Count"), _one),
    **dict.fromkeys(("Latch", "SumWhere"), _each_of_each),
    "Select": lambda attributes, read: read[1],
    **dict.fromkeys(("OneHotOf", "Permute"), lambda attributes, read: attributes["n"]),
    "Decode": lambda attributes, read: shape_of(attributes["words"])[0],
}
"""The lanes that an operation makes of its operands."""


def _low_above_high(attributes: dict) -> bool:
    return Fraction(attributes["lo"]) > Fraction(attributes["hi"])


def _listed(read: Read) -> str:
    return ", ".join(map(str, read))
