"""What a regular expression is made of, sign by sign.

What others read in another way than automata-lib, or what it reads wrongly, is refused here and never passed on:
`a+?` (lazy elsewhere), `a|b&c` (one rank here), `a{0}` (read as `a{1}`) and `[c-a]` (read as no letter).
"""

from __future__ import annotations

import re
from math import prod

MOST_CHARACTERS, MOST_REPEATS = 2000, 4096
RESERVED = "*+?|&^(){}[].\\, "
WORDS = "letters, | ( ) * + ? {m,n} [a-c] . (any letter), & (both) and ^ (shuffle)"
_SIGN = re.compile(r"\[\^?(?P<held>[^][]*)\]|\{(?P<times>[^{}]*)\}|(?P<one>[^][{}])", re.DOTALL)
_TIMES = re.compile(r"(?P<least>[0-9]*)(?P<comma>,)?(?P<most>[0-9]*)")
_JOINING, _REPEATING = "|&^", "*+?"


def letters_of(expression: str) -> set[str]:
    """The letters that an expression names; ValueError, in one sentence, for a sign that is refused."""
    if len(expression) > MOST_CHARACTERS:
        raise ValueError(f"the expression has {len(expression)} characters, and {MOST_CHARACTERS} are the most")
    if "\\" in expression:
        raise ValueError(f"the expression {expression!r} holds a backslash; it may hold {WORDS}")
    found: set[str] = set()
    joined = [""]  # the sign between the parts of each parenthesis that is open
    end, repeats, repeated = 0, [1], ""
    while end < len(expression):
        sign = _SIGN.match(expression, end)
        if sign is None:
            raise ValueError(f"the expression {expression!r} holds {expression[end]!r} alone; it may hold {WORDS}")
        end, one = sign.end(), sign["one"]
        if sign["times"] is not None or one and one in _REPEATING:
            if repeated:
                told = f"repeats by {repeated} and at once by {sign[0]}, which not all read alike"
                raise ValueError(f"the expression {expression!r} {told}; put parentheses around what is repeated first")
            repeated = sign[0]
            repeats.append(_repeats(expression, sign[0], sign["times"]))
            continue
        repeated = ""
        if sign["held"] is not None:
            found |= _held(expression, sign[0], sign["held"])
        elif one == "(":
            joined.append("")
        elif one == ")":
            joined = joined[:-1] or [""]
        elif one in _JOINING:
            if joined[-1] not in ("", one):
                told = f"joins parts by {joined[-1]} and by {one}, of which neither comes first"
                raise ValueError(f"the expression {expression!r} {told}; put parentheses around what belongs together")
            joined[-1] = one
        elif one not in RESERVED:
            found.add(one)
    if prod(repeats) > MOST_REPEATS:
        raise ValueError(
            f"the repetitions of the expression multiply to {prod(repeats)}, and {MOST_REPEATS} are the most"
        )
    return found


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
        found |= {chr(c) for c in range(ord(first), ord(last) + 1)}
    found |= set(re.sub(r".-.", "", held))
    odd = sorted(found & set(RESERVED))
    if odd or not found:
        told = f"{odd[0]!r}, which is a sign" if odd else "no letter"
        raise ValueError(f"the expression {expression!r} has {told} in {sign}; it may hold {WORDS}")
    return found
