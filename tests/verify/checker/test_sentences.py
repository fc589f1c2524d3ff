"""Each task asks what its sentence says, read by one who knows the sentence only.

Every text of the letters that a task has a place for is gone through, in any order, with a strange letter where others
are passed over. A reading is a function from the letters so far to the right answer; "" where nothing is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product

import pytest

from verify.checker.formats import Rejected
from verify.checker.tasks.task import _MACHINES, _TASKS, MATCHES, read_task

Text = tuple[str, ...]
Reading = Callable[[Text], str]
STRANGE = "strange"


def _behind(text: Text, first: str, values: str) -> list[str]:
    """The letters of values that stood right after `first`, in turn."""
    return [b for a, b in zip(text, text[1:]) if a == first and b[0] in values]


def _mqar(text: Text, which: str) -> str:
    found = _behind(text, text[-1], "v") if text[-1][0] == "k" else []
    if which == "sum":
        return found[0] if len(found) == 1 else ""
    return (found[0] if which == "first" else found[-1]) if found else ""


def _induction(text: Text) -> str:
    return (_behind(text, text[-1], "v") or ["×"])[-1]


def _recall(text: Text, once: bool, keys: str) -> str:
    found = _behind(text, text[-1], "v") if text[-1][0] == keys else []
    return found[0] if (len(found) == 1 if once else len(set(found)) == 1) else ""


def _ngram(text: Text, n: int, once: bool) -> str:
    """The text up to each place is cut behind its last stop; what is left, or its last n letters, is the context."""

    def context(text: Text) -> tuple[bool, Text] | None:
        kind, run = "", []
        for letter in text:
            kind, run = (letter, []) if letter[0] != "x" else (kind, [*run, letter])
        if len(run) >= n:
            return False, tuple(run[-n:])
        return (True, tuple(run)) if kind in ("^", "|") else None

    here = context(text)
    found = [text[i] for i in range(len(text)) if here is not None and context(text[:i]) == here]
    found = ["." if a == "|" else a for a in found if a[0] in "x|"]
    return found[0] if (len(found) == 1 if once else len(set(found)) == 1) else ""


def _selection(text: Text) -> str:
    """Three angles that divide the circle: each is nearest to itself, and as near to either of the others."""
    if text[-1][0] != "q":
        return ""
    items = [a.split("=") for a in text[:-1] if "=" in a]
    own = [v for k, v in items if k[1] == text[-1][1]]
    said = set(own or [v for _, v in items])
    return said.pop() if len(said) == 1 else ""


def _copied(text: Text) -> str:
    """Behind the first bar; nothing is asked behind an end that stands behind it."""
    if "|" not in text:
        return ""
    bar = text.index("|")
    before, behind = text[:bar], text[bar + 1 :]
    if "." in behind:
        return ""
    wanted = [a for a in before if a[0] == "x"] + ["."]
    return wanted[min(sum(a[0] == "x" for a in behind), len(wanted) - 1)]


def _back(text: Text, n: int) -> str:
    return text[-1 - n] if len(text) > n else "."


def _pointer(text: Text) -> str:
    copied = [a for a in text if a[0] == "x"]
    return (copied[int(text[-1][1:]) - 1 :] or ["."])[0] if text[-1][0] == "@" else ""


def _place(text: Text) -> str:
    copied, (_, at, place) = [a.split("@")[0] for a in text], text[-1].partition("@")
    return (copied[int(place) - 1 :] or ["."])[0] if at else ""


def _phonebook(text: Text, most: int) -> str | None:
    if "?" not in text:
        return ""
    mark = text.index("?")
    book, behind = list(text[:mark]), list(text[mark + 1 :])
    name = next((i for i, a in enumerate(behind) if a[0] == "n"), None)
    people = [a for a in book if a[0] == "n"]
    if name is None or "." in behind[name:] or len(people) > most:
        return ""
    if len(set(people)) < len(people):
        return None  # the book does not say which
    digits = []
    if behind[name] in people:
        entry = book[book.index(behind[name]) + 1 :]
        digits = [a for a in entry[: next((i for i, a in enumerate(entry) if a[0] == "n"), None)] if a.isdigit()]
    return [*digits, ".", *[""] * len(behind)][sum(a.isdigit() for a in behind[name:])]


def _entries(text: Text, tokens: list[str], end: str, entry: Callable[[int, list[int]], int]) -> str:
    """`n ;` and the entries behind it."""
    if len(text) < 2 or not text[0].isdigit() or text[1] != ";" or any(a in (";", end) for a in text[2:]):
        return ""
    written = [tokens.index(a) if a in tokens else int(a) for a in text[2:]]
    if len(written) > int(text[0]):
        return end
    value = entry(len(written), written)
    return tokens[value] if 0 <= value < len(tokens) else ""


def _fibonacci(text: Text, modulus: int) -> str:
    rule = lambda i, x: (0 if i == 0 else x[0] + 1 if i == 1 else x[-1] + x[-2]) % modulus
    return _entries(text, ["0", "1"], ".", rule)  # there is no letter for 2


def _coins(text: Text, coins: tuple[int, ...], most: int) -> str | None:
    def entry(i: int, x: list[int]) -> int:
        return min([x[i - coin] + 1 for coin in coins if coin <= i] + [most + 1]) if i else 0

    if text[0] == "-":
        return None  # no number
    return _entries(text, [*map(str, range(most + 1)), "-"], ".", entry)


def _words(text: Text, edit: bool) -> str:
    """The entries one by one; rows that are too long or too short ask nothing."""
    whole = "".join(text)
    words, mark, table = whole.partition(";")
    first, bar, second = words.partition("|")
    if not (mark and bar) or not all(a in "ab" for a in first + second) or "." in table:
        return ""
    rows = table.split(";")
    n = len(second)
    if any(not row.isdigit() and row for row in rows) or any(len(row) != n + 1 for row in rows[:-1]):
        return ""
    if len(rows) > len(first) + 1 or len(rows[-1]) > n + 1:
        return ""
    r, c = len(rows) - 1, len(rows[-1])
    if c == n + 1:
        return ";" if r < len(first) else "."
    ways = [int(rows[r - 1][c]) + edit] if r else []
    ways += [int(rows[r][c - 1]) + edit] if c else []
    if r and c:
        ways.append(int(rows[r - 1][c - 1]) + ((first[r - 1] == second[c - 1]) != edit))
    value = (min if edit else max)(ways, default=0)
    return str(value) if value <= 1 else ""


def _paths(text: Text) -> str:
    """Three nodes: edges 01 02 12, lengths to 1, so that 3 is where none leads."""
    edges, behind = text[:3], text[4:]
    if len(text) < 4 or text[3] != ";" or not all(a in ("-", "e1") for a in edges):
        return ""
    if not all(a.isdigit() for a in behind) or len(behind) > 3:
        return ""
    b, x = len(behind), [int(a) for a in behind]
    if b == 3:
        return "."
    ways = [x[i] + 1 for i, j, edge in zip((0, 0, 1), (1, 2, 2), edges, strict=True) if j == b and edge == "e1"]
    return str(min([*ways, 3])) if b else "0"


def _forms_lookup(text: Text, which: str | int, blank: str) -> str:
    found = _behind(text, text[-1], "v") if text[-1][0] == "k" else None
    if found is None:
        return ""
    if which == "only":
        return found[0] if len(found) == 1 else "" if found else blank
    place = which - 1 if isinstance(which, int) else 0 if which == "first" else len(found) - 1
    return found[place] if 0 <= place < len(found) else blank


CASES: dict[str, tuple[dict, str, int, Reading]] = {
    **{
        f"mqar {w}": ({"name": "mqar", "write": w}, "k0 k1 v0 v1", 5, lambda t, w=w: _mqar(t, w))
        for w in ("sum", "first", "last")
    },
    "induction-heads": ({"name": "induction-heads"}, "v0 v1 v2", 6, _induction),
    **{
        f"keep-nth {n}": ({"name": "keep-nth", "n": n}, "a b", 6, lambda t, n=n: t[n - 1] if len(t) >= n else "")
        for n in (1, 3, 5)
    },
    "absolute-time": ({"name": "absolute-time"}, "t1 t2 t3", 5, lambda t: f"t{min(len(t), 3)}"),
    "count-in-row": (
        {"name": "count-in-row"},
        "1 c0 c1 c2",
        5,
        lambda t: "c" + str(min(2, [*t[::-1], "c0"].index(next((a for a in t[::-1] if a != "1"), "c0")))),
    ),
    **{
        f"recall {m}": (
            {"name": "recall", "matches": m},
            "k0 k1 v0 v1",
            5,
            lambda t, m=m: _recall(t, m == "one", "k"),
        )
        for m in ("alike", "one")
    },
    **{
        f"unique-induction {m}": (
            {"name": "unique-induction", "matches": m},
            "v0 v1 v2",
            6,
            lambda t, m=m: _recall(t, m == "one", "v"),
        )
        for m in ("alike", "one")
    },
    **{
        f"copy-ngram {n} {m}": (
            {"name": "copy-ngram", "n": n, "matches": m},
            "^ x0 x1 | .",
            4,
            lambda t, n=n, m=m: _ngram(t, n, m == "one"),
        )
        for n in (1, 2)
        for m in ("alike", "one")
    },
    "token-selection": (
        {"name": "token-selection", "points": "angle", "size": 3},
        "k0=v0 k0=v1 k1=v0 k1=v1 k2=v0 k2=v1 q0 q1 q2 v0 v1",
        4,
        _selection,
    ),
    "copy string": ({"name": "copy", "form": "string"}, "x0 x1 | .", 7, _copied),
    "selective-copy": ({"name": "selective-copy"}, "x0 x1 _ | .", 6, _copied),
    **{
        f"copy delay {n}": ({"name": "copy", "form": "delay", "n": n}, "x0 x1", 6, lambda t, n=n: _back(t, n))
        for n in (1, 2, 7)
    },
    "copy pointer": ({"name": "copy", "form": "pointer"}, "x0 x1 @1 @2", 6, _pointer),
    "copy place": ({"name": "copy", "form": "place"}, "x0 x1 x0@1 x0@2 x1@1 x1@2", 5, _place),
    **{
        f"phonebook {n}": (
            {"name": "phonebook", "entries": n},
            "n0 n1 0 ; ? .",
            6,
            lambda t, n=n: _phonebook(t, n),
        )
        for n in (1, 2, 3)
    },
    **{
        f"fibonacci {n}": ({"name": "fibonacci", "modulus": n}, "0 1 ; .", 7, lambda t, n=n: _fibonacci(t, n))
        for n in (1, 2, 3, 4)
    },
    **{
        f"coin-change {coins} {most}": (
            {"name": "coin-change", "coins": list(coins), "most": most},
            "0 1 2 - ; .",
            5,
            lambda t, c=coins, m=most: _coins(t, c, m),
        )
        for coins, most in (((3, 2), 1), ((1,), 1), ((2,), 2), ((2, 1), 2), ((4, 3), 2))
    },
    "edit-distance": ({"name": "edit-distance"}, "a b | ; 0 1 .", 4, lambda t: _words(t, True)),
    "lcs": ({"name": "lcs"}, "a b | ; 0 1 .", 4, lambda t: _words(t, False)),
    "shortest-path": ({"name": "shortest-path", "nodes": 3}, "- e1 ; 0 1 2 3 .", 5, _paths),
    **{
        f"lookup {w}": (
            {"name": "lookup", "keys": ["k0", "k1"], "values": ["v0", "v1"], "which": w, "blank": "v0", "end": None},
            "k0 k1 v0 v1",
            5,
            lambda t, w=w: _forms_lookup(t, w, "v0"),
        )
        for w in ("first", "last", "only", 2)
    },
    "count": (
        {"name": "count", "of": ["a", "b"], "since": ["c"], "answers": ["no", "yes"], "end": None},
        "a b c",
        6,
        lambda t: "yes" if {"a", "b"} & set(t[len(t) - [*t[::-1], "c"].index("c") :]) else "no",
    ),
}
LATER = {"shortest-path": [("e1", "-", "e1", ";"), ("-", "e1", "-", ";"), ("-", "-", "e1", ";", "0", "3")]}
LATER |= {name: [tuple("ab|b;"), tuple("a|ab;010;"), tuple("|ab;")] for name in ("edit-distance", "lcs")}
LATER |= {f"copy-ngram {n} {m}": [("^", "x0", "x1", "|"), ("^", "x0", "x0")] for n in (1, 2) for m in ("alike", "one")}
LATER |= {name: [("2", ";", "0", "-"), ("1", ";", "0", "-")] for name in CASES if name.startswith("coin")}
SAID = {"count": ["yes", "no"], "induction-heads": ["×"]} | {f"copy delay {n}": ["."] for n in (1, 2, 7)}
SAID |= {"copy pointer": ["."], "copy place": ["."]}


def _texts(letters: list[str], length: int, begins: list[Text]) -> Iterator[Text]:
    yield from product(letters, repeat=length)
    for begin in begins:
        for more in product(letters, repeat=3):
            yield (*begin, *more)


@pytest.mark.parametrize("name", CASES)
def test_a_task_asks_what_its_sentence_says(name):
    claim, listed, length, reading = CASES[name]
    letters = listed.split()
    names = [*letters, *SAID.get(name, []), STRANGE]
    stated = read_task(claim, names)
    reading = cache(reading)
    passed = [STRANGE] if stated.known is None else []
    if stated.known is not None:
        assert sorted(names[i] for i in stated.known) == sorted(letters)
    asked = 0
    for text in _texts(letters + passed, length - bool(passed), LATER.get(name, [])):
        found = stated.task.answers([names.index(a) for a in text])
        for t, answer in enumerate(found, 1):
            right = reading(text[:t])
            assert right is None or (names[answer] if answer is not None else "") == right, (text[:t], stated.says)
        asked += any(answer is not None for answer in found)
    assert asked > 10


@pytest.mark.parametrize("most", [3, 5])
def test_a_number_of_coins_without_a_letter_is_refused(most):
    """Else `-` stood for a number: it was asked nowhere, and the sentence said that it was."""
    with pytest.raises(Rejected, match=f"at most {most} coins needs the letters 0 … {most}, and `0 1 2` are there"):
        read_task({"name": "coin-change", "coins": [2], "most": most}, ["0", "1", "2", "-", ";", "."])


def test_every_task_is_read():
    assert {claim["name"] for claim, *_ in CASES.values()} | {"automaton"} == {*_TASKS, *_MACHINES, *MATCHES}
