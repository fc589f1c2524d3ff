"""Circuits as data that ask for too much: each family takes a size and writes a circuit of its kind as large as that.

All but the few that say so are of right types, so that only a budget stands between them and the work that they ask
for. They are over the alphabet and language of a small checkpoint; what they compute means nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

Data = dict[str, Any]
NOWHERE: list[Any] = ["oversized.py", 1]
FLAG, COUNT = {"kind": "Bool", "width": 1}, {"kind": "Int", "lo": 1, "hi": None, "width": 1}


class Paper:
    """A circuit that is written down stream by stream, in the place of those of a small circuit."""

    def __init__(self, small: Data):
        self.data = copy.deepcopy(small) | {"streams": [], "codebooks": []}
        self.letters = len(small["alphabet"])

    def put(self, operation: str, attributes: Data, inputs: list[int], kind: Data) -> int:
        """The place of one more stream."""
        stream = {"operation": operation, "attributes": attributes, "inputs": inputs, "type": kind}
        self.data["streams"].append(stream | {"name": None, "source": NOWHERE})
        return len(self.data["streams"]) - 1

    def position(self) -> int:
        return self.put("Position", {}, [], COUNT)

    def flag(self) -> int:
        return self.embed(1)

    def embed(self, width: int) -> int:
        """Flags that all tell the first letter."""
        rows = [[[i, 1] for i in range(width)], *([] for _ in range(self.letters - 1))]
        kind = {"kind": "Bool", "width": width}
        return self.put("Embed", {"table": {"shape": [self.letters, width], "rows": rows}, "type": kind}, [], kind)

    def one_hot(self, n: int) -> int:
        return self.put("OneHotOf", {"n": n}, [self.position()], {"kind": "OneHot", "n": n})

    def lanes(self, n: int) -> int:
        """So many flags at the price of one."""
        return self.put("Not", {}, [self.one_hot(n)], {"kind": "Bool", "width": n})

    def read(self, place: int, width: int) -> Data:
        """The circuit that scores with the first lane of a stream."""
        rows = [[[0, 1]], *([] for _ in range(self.letters - 1))]
        kind = {"kind": "Logits", "width": self.letters}
        matrix = {"shape": [self.letters, width], "rows": rows}
        self.data["output"] = self.put("Linear", {"matrices": [matrix], "type": kind}, [place], kind)
        return self.data


Family = Callable[[Data, int], Data]
FAMILIES: dict[str, Family] = {}
WRITTEN_OUT = {
    *("lti", "lookup", "cumsums", "constants", "digits", "long_fraction", "deep", "deep_rectifiers", "many_operands"),
    *("gates", "rules", "path", "ring", "web", "parallel", "alphabet", "groups", "long_name", "many_lanes"),
    *("long_relation", "long_policy", "long_operation", "long_start"),
}
"""Families whose circuit.json grows with the size."""


def family(function: Family) -> Family:
    FAMILIES[function.__name__] = function
    return function


@family
def diagonal(small: Data, n: int) -> Data:
    """`Linear {"diagonal": 1, "size": n}`."""
    paper = Paper(small)
    flags = paper.lanes(n)
    matrix = {"diagonal": 1, "size": n}
    return paper.read(
        paper.put(
            "Linear", {"matrices": [matrix], "type": None}, [flags], {"kind": "Int", "lo": None, "hi": None, "width": n}
        ),
        n,
    )


@family
def one_hot(small: Data, n: int) -> Data:
    paper = Paper(small)
    return paper.read(paper.one_hot(n), n)


@family
def lti(small: Data, n: int) -> Data:
    """A filter of n taps."""
    paper = Paper(small)
    kind = {"kind": "Int", "lo": None, "hi": None, "width": 1}
    return paper.read(paper.put("Lti", {"kernel": [1] * n}, [paper.flag()], kind), 1)


@family
def lookup(small: Data, n: int) -> Data:
    """A table of n entries of the position."""
    paper = Paper(small)
    table = [i * i % 7 for i in range(n)]
    kind = {"kind": "Int", "lo": 0, "hi": max(table), "width": 1}
    return paper.read(paper.put("Lookup", {"table": table, "symbols": False}, [paper.position()], kind), 1)


@family
def many_lanes(small: Data, n: int) -> Data:
    """Streams of 2^14 lanes and what is left, one behind the other."""
    paper = Paper(small)
    width = min(n, 1 << 14)
    place = paper.lanes(width)
    for _ in range(n // width):
        place = paper.put("Not", {}, [place], {"kind": "Bool", "width": width})
    return paper.read(place, width)


@family
def cumsums(small: Data, n: int) -> Data:
    """n running sums, which need a state column each."""
    paper = Paper(small)
    kind = {"kind": "Int", "lo": None, "hi": None, "width": n}
    return paper.read(paper.put("Cumsum", {}, [paper.embed(n)], kind), n)


@family
def products(small: Data, n: int) -> Data:
    """n products of numbers that differ."""
    paper = Paper(small)
    kind = {"kind": "Int", "lo": None, "hi": None, "width": n}
    sums = paper.put("Cumsum", {}, [paper.lanes(n)], kind)
    return paper.read(paper.put("Multiply", {}, [sums, sums], kind), n)


@family
def constants(small: Data, n: int) -> Data:
    """A constant of n lanes, all of them other numbers."""
    paper = Paper(small)
    kind = {"kind": "Int", "lo": 2, "hi": n + 1, "width": n}
    return paper.read(paper.put("Constant", {"values": list(range(2, n + 2))}, [], kind), n)


@family
def digits(small: Data, n: int) -> Data:
    """A constant of n digits."""
    paper = Paper(small)
    value = int("9" * min(n, 4000)) if n < 4000 else "9" * n
    return paper.read(
        paper.put("Constant", {"values": [value]}, [], {"kind": "Int", "lo": value, "hi": value, "width": 1}), 1
    )


@family
def long_fraction(small: Data, n: int) -> Data:
    """A constant of n bits behind the point."""
    paper = Paper(small)
    value = f"1/{1 << min(n, 3000)}" if n < 3000 else "1/1" + "0" * n
    return paper.read(
        paper.put("Constant", {"values": [value]}, [], {"kind": "Real", "lo": value, "hi": value, "width": 1}), 1
    )


@family
def exponent(small: Data, n: int) -> Data:
    """`Constant "1e9…9"`, which no writer of ours writes (ill-typed)."""
    paper = Paper(small)
    return paper.read(
        paper.put("Constant", {"values": [f"1e{n}"]}, [], {"kind": "Int", "lo": 1, "hi": 1, "width": 1}), 1
    )


@family
def shift(small: Data, n: int) -> Data:
    paper = Paper(small)
    return paper.read(paper.put("Shift", {"k": n}, [paper.flag()], FLAG), 1)


@family
def deep(small: Data, n: int) -> Data:
    """n shifts, one behind the other."""
    paper = Paper(small)
    place = paper.flag()
    for _ in range(n):
        place = paper.put("Shift", {"k": 1}, [place], FLAG)
    return paper.read(place, 1)


@family
def deep_rectifiers(small: Data, n: int) -> Data:
    """n rectifiers of the position, one behind the other, none of which can be left out."""
    paper = Paper(small)
    place = paper.position()
    kind = {"kind": "Int", "lo": None, "hi": None, "width": 1}
    one = paper.put("Constant", {"values": [1]}, [], FLAG)
    matrices = [{"shape": [1, 1], "rows": [[[0, 1]]]}, {"shape": [1, 1], "rows": [[[0, -1]]]}]
    for _ in range(n):
        less = paper.put("Linear", {"matrices": matrices, "type": None}, [place, one], kind)
        place = paper.put("Relu", {}, [less], kind | {"lo": 0})
    return paper.read(place, 1)


@family
def gates(small: Data, n: int) -> Data:
    """n flags of the present token, each of the one before it."""
    paper = Paper(small)
    first = place = paper.flag()
    for _ in range(n):
        place = paper.put("And", {}, [place, first], FLAG)
    return paper.read(place, 1)


@family
def many_operands(small: Data, n: int) -> Data:
    """One sum of n operands."""
    paper = Paper(small)
    flag = paper.flag()
    kind = {"kind": "Int", "lo": None, "hi": None, "width": 1}
    matrix = {"shape": [1, 1], "rows": [[[0, 1]]]}
    return paper.read(paper.put("Linear", {"matrices": [matrix] * n, "type": None}, [flag] * n, kind), 1)


@family
def clip(small: Data, n: int) -> Data:
    paper = Paper(small)
    kind = {"kind": "Int", "lo": -n, "hi": n, "width": 1}
    return paper.read(paper.put("Clip", {"lo": -n, "hi": n}, [paper.position()], kind), 1)


@family
def divided(small: Data, n: int) -> Data:
    paper = Paper(small)
    kind = {"kind": "Int", "lo": None, "hi": None, "width": 1}
    return paper.read(paper.put("FloorDivide", {"divisor": n}, [paper.position()], kind), 1)


@family
def memory(small: Data, n: int) -> Data:
    """A memory of n slots."""
    paper = Paper(small)
    key = paper.one_hot(n)
    attributes = {"policy": "sum", "writes": None, "skip": 0}
    kind = {"kind": "Int", "lo": None, "hi": None, "width": 1}
    return paper.read(paper.put("MemoryRead", attributes, [paper.flag(), key, key], kind), 1)


@family
def decoded(small: Data, n: int) -> Data:
    """n codewords, each a lane."""
    paper = Paper(small)
    words = {"diagonal": 1, "size": n}
    return paper.read(paper.put("Decode", {"words": words}, [paper.one_hot(n)], {"kind": "OneHot", "n": n}), n)


@family
def codebook(small: Data, n: int) -> Data:
    """A book of n words of n places, that nobody reads."""
    data = copy.deepcopy(small)
    data["codebooks"] = [{"diagonal": 1, "size": n}]
    return data


@family
def rules(small: Data, n: int) -> Data:
    """n rules over the scores."""
    paper = Paper(small)
    flag = paper.flag()
    kind = {"kind": "Logits", "width": paper.letters}
    scores = paper.read(flag, 1)["output"]
    paper.data["output"] = paper.put("Decide", {"tokens": [0] * n}, [scores] + [flag] * n, kind)
    return paper.data


@family
def compared(small: Data, n: int) -> Data:
    """n lanes compared with n lanes."""
    paper = Paper(small)
    kind = {"kind": "Int", "lo": None, "hi": None, "width": n}
    sums = paper.put("Cumsum", {}, [paper.lanes(n)], kind)
    other = paper.put("Shift", {"k": 1}, [sums], kind)
    return paper.read(paper.put("Compare", {"relation": ">"}, [sums, other], {"kind": "Bool", "width": n}), n)


@family
def running_max(small: Data, n: int) -> Data:
    """The largest of numbers up to n."""
    paper = Paper(small)
    kind = {"kind": "Int", "lo": None, "hi": None, "width": 1}
    clipped = paper.put("Clip", {"lo": 0, "hi": n}, [paper.position()], {"kind": "Int", "lo": 0, "hi": n, "width": 1})
    return paper.read(paper.put("RunningMax", {}, [clipped, paper.flag()], kind), 1)


def _edges(small: Data, edges: list[tuple[int, int]]) -> Data:
    data = copy.deepcopy(small)
    automaton = data["promise"]["language"]
    automaton["start"] = "0"
    automaton["edges"] = [{"from": str(s), "to": str(t), "tokens": [[0, 1]], "distinct": False} for s, t in edges]
    return data


@family
def path(small: Data, n: int) -> Data:
    """A language of n edges one behind the other."""
    return _edges(small, [(i, i + 1) for i in range(n)]) | {}


@family
def ring(small: Data, n: int) -> Data:
    return _edges(small, [(i, (i + 1) % n) for i in range(n)])


@family
def web(small: Data, n: int) -> Data:
    """A language of n edges in which every state follows every other."""
    side = max(1, int(n**0.5))
    return _edges(small, [(i, j) for i in range(side) for j in range(side)])


@family
def parallel(small: Data, n: int) -> Data:
    """n edges from one state to itself."""
    return _edges(small, [(0, 0)] * n)


@family
def length(small: Data, n: int) -> Data:
    data = copy.deepcopy(small)
    data["promise"]["length"] = n
    return data


@family
def alphabet(small: Data, n: int) -> Data:
    """n letters, of which the language has two."""
    data = copy.deepcopy(small)
    data["alphabet"] = [*small["alphabet"], *(f"x{i}" for i in range(n))]
    data["promise"]["language"]["tokens"] = len(data["alphabet"])
    return data


@family
def groups(small: Data, n: int) -> Data:
    return copy.deepcopy(small) | {"groups": [[f"g{i}", 0, 1] for i in range(n)]}


@family
def long_name(small: Data, n: int) -> Data:
    return copy.deepcopy(small) | {"name": "x" * n}


@family
def long_relation(small: Data, n: int) -> Data:
    """A comparison of no known kind, whose name is long (ill-typed)."""
    paper = Paper(small)
    at = paper.position()
    return paper.read(paper.put("Compare", {"relation": ">" * n}, [at, at], FLAG), 1)


@family
def long_policy(small: Data, n: int) -> Data:
    """A memory of no known policy (ill-typed)."""
    data = memory(small, 4)
    data["streams"][-2]["attributes"]["policy"] = "x" * n
    return data


@family
def long_operation(small: Data, n: int) -> Data:
    """An operation that nobody knows (ill-typed)."""
    data = copy.deepcopy(small)
    data["streams"][0]["operation"] = "x" * n
    return data


@family
def long_start(small: Data, n: int) -> Data:
    """A language whose start no edge leaves (ill-typed)."""
    data = copy.deepcopy(small)
    data["promise"]["language"]["start"] = "x" * n
    return data


@family
def nested(small: Data, n: int) -> Data:
    """Lists in lists (ill-typed)."""
    data = copy.deepcopy(small)
    inner: list = []
    for _ in range(min(n, 400)):
        inner = [inner]
    data["streams"][0]["attributes"]["table"] = inner
    return data
