"""Languages of the literature by name, each as a table, with where it was studied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations

from compiler.automata.regex import regex_table
from compiler.automata.table import NO, YES, Table, table_of

TOMITA = "Tomita 1982"
BHATTAMISHRA = "Bhattamishra et al. 2020"
DELETANG = "Delétang et al. 2022"
LIU = "Liu et al. 2023"
MERRILL = "Merrill et al. 2024"
TEXTBOOK = "textbooks"
SIMON = "Simon 1975"


@dataclass(frozen=True)
class Language:
    """source: who studied it; says: what it is; make: its table."""

    source: str
    says: str
    make: Callable[[], Table]


def _regex(source: str, expression: str, letters: str, says: str = "") -> Language:
    return Language(source, says or expression, lambda: regex_table(expression, letters))


def _machine(start: str, letters: Iterable[str], step: Callable, accepts: Callable) -> Table:
    """All states that `step(state, letter)` leads to; accepts: of a state, whether it is or what it answers."""
    rows: dict = {}
    waiting = [start]
    letters = list(letters)
    for state in waiting:
        if state not in rows:
            rows[state] = {letter: step(state, letter) for letter in letters}
            waiting += rows[state].values()
    said = {state: accepts(state) for state in rows}
    outputs = {str(s): (YES if a else NO) if isinstance(a, bool) else a for s, a in said.items()}
    return table_of({str(s): {a: str(to) for a, to in row.items()} for s, row in rows.items()}, str(start), outputs)


def _dyck(pairs: str, depth: int) -> Language:
    """Well-nested brackets of at most this depth."""
    opens, closes = pairs[::2], pairs[1::2]

    def step(stack: str, letter: str) -> str:
        if stack == "x":
            return stack
        if letter in opens:
            return stack + letter if len(stack) < depth else "x"
        return stack[:-1] if stack[-1:] == opens[closes.index(letter)] else "x"

    says = f"brackets {' '.join(pairs)} of depth {depth}"
    return Language(BHATTAMISHRA, says, lambda: _machine("", pairs, step, lambda stack: stack == ""))


def _nested(n: int) -> Language:
    """D_n = (a D_(n−1) b)*."""
    expression = ""
    for _ in range(n):
        expression = f"(a{expression}b)*"
    return _regex(BHATTAMISHRA, expression, "ab", f"D_{n}")


def _modulo(source: str, m: int, letters: dict[str, int], says: str) -> Language:
    step = lambda state, letter: str((int(state) + letters[letter]) % m)
    return Language(source, says, lambda: _machine("0", letters, step, lambda state: state == "0"))


def _cycle() -> Language:
    """Where a walker on a circle of five places is."""
    moves = {"+": 1, "-": -1, "0": 0}
    step = lambda state, letter: str((int(state) + moves[letter]) % 5)
    return Language(DELETANG, "places on a circle of 5", lambda: _machine("0", moves, step, lambda s: f"at{s}"))


def _tomita_3() -> Table:
    """States: in a run of a's (even, odd), in a run of b's behind an even one (e), behind an odd one (even, odd)."""
    rows = {
        "e": {"a": "a1", "b": "e"},
        "a1": {"a": "a0", "b": "b1"},
        "a0": {"a": "a1", "b": "e"},
        "b1": {"a": "x", "b": "b0"},
        "b0": {"a": "a1", "b": "b1"},
        "x": {"a": "x", "b": "x"},
    }
    return table_of(rows, "e", {state: NO if state in ("b1", "x") else YES for state in rows})


def _flip_flop() -> Language:
    """write and read bits, and ignore others: the answer is the bit that was written last."""

    def follow(state: str, letter: str) -> str:
        mode, bit = state[0], state[1]
        if letter in "wri":
            return letter + bit
        return "." + (letter if mode == "w" else bit)

    return Language(LIU, "the bit behind the last w", lambda: _machine(".0", "wri01", follow, lambda s: f"bit{s[1]}"))


def _word_problem(name: str, degree: int, generators: dict[str, Sequence[int]], even: bool) -> Language:
    """Whether the product of the permutations so far is the identity."""
    step = lambda state, letter: "".join(state[i] for i in generators[letter])
    start = "".join(map(str, range(degree)))
    size = sum(1 for p in permutations(range(degree)) if not even or _is_even(p))
    says = f"words over {name} ({size} elements) that multiply to 1"
    return Language(MERRILL, says, lambda: _machine(start, generators, step, lambda state: state == start))


def _is_even(p: Sequence[int]) -> bool:
    return sum(a > b for i, a in enumerate(p) for b in p[i + 1 :]) % 2 == 0


def _adjacent(n: int) -> dict[str, Sequence[int]]:
    """A transposition and a circle generate S_n."""
    return {"s": (1, 0, *range(2, n)), "c": (*range(1, n), 0)}


NAMED: dict[str, Language] = {
    "tomita-1": _regex(TOMITA, "a*", "ab"),
    "tomita-2": _regex(TOMITA, "(ab)*", "ab"),
    "tomita-3": Language(TOMITA, "no odd run of a's right before an odd run of b's", _tomita_3),
    "tomita-4": _regex(TOMITA, "(b|ab|aab)*(a|aa)?", "ab", "no a a a"),
    "tomita-5": Language(
        TOMITA,
        "even numbers of a's and of b's",
        lambda: _machine(
            "00", "ab", lambda s, c: f"{int(s[0]) ^ (c == 'a')}{int(s[1]) ^ (c == 'b')}", lambda s: s == "00"
        ),
    ),
    "tomita-6": _modulo(TOMITA, 3, {"a": 1, "b": 2}, "as many a's as b's, modulo 3"),
    "tomita-7": _regex(TOMITA, "b*a*b*a*", "ab"),
    **{f"d-{n}": _nested(n) for n in (2, 3, 4, 6, 8, 12)},
    **{f"dyck-1-{depth}": _dyck("()", depth) for depth in (2, 3, 4)},
    **{f"dyck-2-{depth}": _dyck("()[]", depth) for depth in (2, 3, 4)},
    "flip-flop": _flip_flop(),
    "even-pairs": _regex(DELETANG, "(a(a|b)*a)|(b(a|b)*b)|a|b", "ab", "as many ab as ba: first and last letter agree"),
    "starts-with-a": _regex(TEXTBOOK, "a(a|b)*", "ab"),
    "ends-with-abb": _regex(TEXTBOOK, "(a|b)*abb", "ab"),
    "contains-abc": _regex(TEXTBOOK, "(a|b|c)*abc(a|b|c)*", "abc"),
    "aa-bb-cc": _regex(BHATTAMISHRA, "aa*bb*cc*dd*ee*", "abcde", "AA*BB*CC*DD*EE*"),
    "one-c": _regex(TEXTBOOK, "(a|b)*c(a|b)*", "abc", "one c"),
    "012-star-0-2": _regex(BHATTAMISHRA, "(0|1|2)*0(2)*", "012", "{0,1,2}*02*"),
    "subsequence-ab": _regex(SIMON, "(a|b)*a(a|b)*b(a|b)*", "ab", "a before b"),
    "subsequence-abc": _regex(SIMON, "(a|b|c)*a(a|b|c)*b(a|b|c)*c(a|b|c)*", "abc", "a before b before c"),
    "subsequence-abcd": _regex(SIMON, ".*a.*b.*c.*d.*", "abcd", "a before b before c before d"),
    "at-most-two-a": _regex(SIMON, "b*(ab*)?(ab*)?", "ab"),
    "parity": _modulo(BHATTAMISHRA, 2, {"a": 1, "b": 0}, "an even number of a's"),
    "aa-star": _modulo(BHATTAMISHRA, 2, {"a": 1}, "(aa)*"),
    "aaaa-star": _modulo(BHATTAMISHRA, 4, {"a": 1}, "(aaaa)*"),
    "abab-star": _regex(BHATTAMISHRA, "(abab)*", "ab"),
    "modulo-3": _modulo(DELETANG, 3, {"0": 0, "1": 1, "2": 2}, "a sum of digits that 3 divides"),
    "modulo-5": _modulo(DELETANG, 5, {str(i): i for i in range(5)}, "a sum of digits that 5 divides"),
    "cycle-5": _cycle(),
    "s3": _word_problem("S_3", 3, _adjacent(3), even=False),
    "s4": _word_problem("S_4", 4, _adjacent(4), even=False),
    "a5": _word_problem("A_5", 5, {"c": (1, 2, 3, 4, 0), "t": (1, 2, 0, 3, 4)}, even=True),
    "s5": _word_problem("S_5", 5, _adjacent(5), even=False),
}


def named_table(name: str) -> Table:
    """The table of a language by name; ValueError that lists what there is."""
    if name not in NAMED:
        raise ValueError(f"no language is named {name!r}; there are {', '.join(NAMED)}")
    return NAMED[name].make()
