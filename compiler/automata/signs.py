"""What a regular expression is made of, sign by sign.

What others read in another way than automata-lib, or what it reads wrongly, is refused here and never passed on:
`a+?` (lazy elsewhere), `a|b&c` (one rank here), `a$` (the end elsewhere), `a{0}` (read as `a{1}`) and `[c-a]` (read as
no letter).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_CHARACTERS, MOST_CHOICES = 2000, 1 << 17
RESERVED = "*+?|&^(){}[].\\, "
WORDS = "letters, | ( ) * + ? {m,n} [a-c] . (any letter), & (both) and ^ (shuffle)"
_SIGN = re.compile(r"\[\^?(?P<held>[^][]*)\]|\{(?P<times>[^{}]*)\}|(?P<one>[^][{}])", re.DOTALL)
_TIMES = re.compile(r"(?P<least>[0-9]*)(?P<comma>,)?(?P<most>[0-9]*)")
_NO_LETTERS = frozenset(", ")  # which the library refuses in words of its own
_JOINING, _REPEATING = frozenset("|&^"), frozenset("*+?")


@dataclass
class _Level:
    """What stands in one pair of parentheses, as far as it was read: how many states its parts take, at most.

    joined: the sign between its parts; done: those before the last such sign; part: the one behind it without its last
    atom, which a repetition takes anew.
    """

    joined: str = ""
    done: int | None = None
    part: int = 0
    atom: int = 0

    def add(self, states: int) -> None:
        self.part, self.atom = self.part + self.atom, states

    def repeat(self, times: int) -> None:
        self.atom = self.atom * times + 1

    def join(self, sign: str) -> None:
        self.joined, self.done, self.part, self.atom = sign, self.states, 0, 0

    @property
    def states(self) -> int:
        here = self.part + self.atom
        if self.done is None:
            return here
        return self.done + here + 1 if self.joined == "|" else self.done * here


def read_signs(expression: str) -> tuple[set[str], int]:
    """The letters that an expression names, and how many states the library makes of it, at most.

    ValueError, in one sentence, for a sign that is refused, and where there would be too many states.
    """
    if len(expression) > MOST_CHARACTERS:
        raise ValueError(f"the expression has {len(expression)} characters, and {MOST_CHARACTERS} are the most")
    if "\\" in expression:
        raise ValueError(f"the expression {expression!r} holds a backslash; it may hold {WORDS}")
    found: set[str] = set()
    levels, repeated = [_Level()], ""
    for sign in _signs(expression):
        one, level = sign["one"], levels[-1]
        repeats = sign["times"] is not None or one in _REPEATING
        if repeats and repeated:
            told = f"repeats by {repeated} and at once by {sign[0]}, which not all read alike"
            raise ValueError(f"the expression {expression!r} {told}; put parentheses around what is repeated first")
        if one in _JOINING and level.joined not in ("", one):
            told = f"joins parts by {level.joined} and by {one}, of which neither comes first"
            raise ValueError(f"the expression {expression!r} {told}; put parentheses around what belongs together")
        repeated = sign[0] if repeats else ""
        if repeats:
            level.repeat(_repeats(expression, sign[0], sign["times"]))
        elif one in _JOINING:
            level.join(one)
        elif one == "(":
            levels.append(_Level())
        elif one == ")":
            level = levels.pop() if len(levels) > 1 else level  # the library says what is wrong with one too many
            levels[-1].add(max(1, level.states))
        else:
            if one == "$":
                told = "which elsewhere means the end; whole words are meant anyway, and the letter is written [$]"
                raise ValueError(f"the expression {expression!r} holds '$', {told}")
            if one in _NO_LETTERS:
                raise ValueError(f"the letter {one!r} cannot stand in an expression, and {expression!r} holds it")
            level.add(2)
            found |= {one} - set(RESERVED) if one else _held(expression, sign[0], sign["held"])
        if levels[-1].states > MOST_CHOICES:
            told = f"would have more than {MOST_CHOICES} states as it is written"
            raise ValueError(f"the automaton of the expression {told}; repeat, mix or intersect less")
    return found, max(1, levels[-1].states)


def _signs(expression: str) -> Iterator[re.Match[str]]:
    end = 0
    while end < len(expression):
        sign = _SIGN.match(expression, end)
        if sign is None:
            raise ValueError(f"the expression {expression!r} holds {expression[end]!r} alone; it may hold {WORDS}")
        end = sign.end()
        yield sign


def _repeats(expression: str, sign: str, times: str | None) -> int:
    """The largest number in {m,n}; 1 for * + ?."""
    if times is None:
        return 1
    numbers = _TIMES.fullmatch(times)
    if numbers is None or not (numbers["least"] or numbers["most"]):
        raise ValueError(f"the expression {expression!r} repeats by {sign}; write {{3}}, {{1,3}}, {{,3}} or {{1,}}")
    least = int(numbers["least"] or 0)
    most = int(numbers["most"]) if numbers["most"] else None if numbers["comma"] else least
    if most is not None and (most < least or most == 0):
        told = "which leaves nothing to repeat; leave that part out" if most == 0 else "and the second is less"
        raise ValueError(f"the expression {expression!r} repeats by {sign}, {told}")
    return max(1, least, most or 0)


def _held(expression: str, sign: str, held: str) -> set[str]:
    """The letters of [ ]."""
    found: set[str] = set()
    for first, last in re.findall(r"(.)-(.)", held):
        if first > last:
            raise ValueError(
                f"the expression {expression!r} has the range {first}-{last} in {sign}, from last to first"
            )
        letters = {chr(c) for c in range(ord(first), ord(last) + 1)}
        _check_held(expression, f"{first}-{last} in {sign}", letters)
        found |= letters
    found |= set(re.sub(r".-.", "", held))
    _check_held(expression, sign, found)
    return found


def _check_held(expression: str, sign: str, letters: set[str]) -> None:
    """ValueError where there is no letter, or one that is a sign."""
    odd = sorted(letters & set(RESERVED))
    if odd or not letters:
        told = f"{odd[0]!r}, which is a sign," if odd else "no letter"
        raise ValueError(f"the expression {expression!r} has {told} in {sign}; it may hold {WORDS}")
