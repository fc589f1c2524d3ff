"""A second evaluator, written from names and descriptions alone: it says what the oracles say.

It was written without a look at circuits or oracles, for circuits that were drawn at random; what it found unclear was
mended in the descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pytest

from constructions.zoo.collection import entries
from constructions.zoo.sources import oracle_source, source

Says = Callable[[list[str]], "str | None"]


def inside(word: list[str]) -> str:
    frames: list[list[str]] = [[]]
    for token in word:
        if token == "(":
            frames.append([])
        elif token == ")":
            frames.pop()
        else:
            frames[-1].append(token)
    return frames[-1][-1] if frames[-1] else "-"


def tape(word: list[str]) -> str:
    cells, head = {}, 0
    for token in word:
        if token in "<>":
            head += {"<": -1, ">": 1}[token]
        else:
            cells[head] = token
    return cells.get(head, "0")


def slope(word: list[str]) -> str:
    levels = [0] * 4 + [int(token) for token in word]
    now, before = sum(levels[-2:]), sum(levels[-4:-2])
    return "up" if now > before else "down" if now < before else "level"


def most(word: list[str], letters: str) -> str:
    best = max(word.count(letter) for letter in letters)
    return next(letter for letter in letters if word.count(letter) == best)


def since_reset(word: list[str]) -> list[str]:
    return word[len(word) - word[::-1].index("reset") :] if "reset" in word else word


def alarm(steps: int) -> Says:
    runs = lambda word: re.findall("[34]+", "".join(since_reset(word)))
    return lambda word: "alarm" if any(len(run) >= steps for run in runs(word)) else "calm"


def larger(word: list[str]) -> str:
    first, second = (int("".join(token[side] for token in word), 3) for side in (0, 2))
    return "<" if first < second else ">" if first > second else "="


def behind_a_bar(result: Callable[[str], Iterable[str]]) -> Says:
    def says(word: list[str]) -> str | None:
        if "|" not in word:
            return None
        bar = word.index("|")
        right, written = [*result("".join(word[:bar])), "."], word[bar + 1 :]
        return right[len(written)] if written == right[: len(written)] != right else None

    return says


def chase(word: list[str]) -> str:
    if word[-2:-1] != ["?"]:
        return "-"
    points = dict(re.findall("([xyz])=([xyz])", "".join(word)))
    return points.get(points.get(word[-1], ""), "-")


def stack(word: list[str]) -> str:
    text, shorter = None, "".join(word)
    while text != shorter:
        text, shorter = shorter, re.sub(r"\(\)|\(]|\[]|\[\)", "", shorter)
    return {"(": ")", "[": "]"}[text[-1]] if text else "-"


def booked(word: list[str]) -> str:
    if not word[-1].isdigit():
        return "0"
    return str(sum(int(amount) for name, amount in zip(word[::2], word[1::2]) if name == word[-2]))


SAYS: dict[str, Says] = {
    "letter-1-kept": lambda w: w[0],
    "letter-4-kept": lambda w: w[3] if len(w) > 3 else "-",
    "letter-inside-2": inside,
    "tape-2": tape,
    "slope-over-2": slope,
    "below-highest": lambda w: str(int(max(w)) - int(w[-1])),
    "most-of-last-5": lambda w: most(w[-5:], "abc"),
    "letters-seen-once": lambda w: str(sum(w.count(letter) == 1 for letter in "abcd")),
    "most-frequent-of-4": lambda w: most(w, "abcd"),
    "alarm-after-2": alarm(2),
    "alarm-after-3": alarm(3),
    "larger-highest-first": larger,
    "regex-ab-star": lambda w: "yes" if "".join(w) == "ab" * (len(w) // 2) else "no",
    "sort-down-5": behind_a_bar(lambda text: sorted(text)[::-1]),
    "kinds-6": behind_a_bar(lambda text: sorted(set(text))),
    "two-for-one-5": behind_a_bar(lambda text: ["c"] * 2 * text.count("a")),
    "peak": lambda w: "yes" if len(w) > 2 and w[-2] > max(w[-3], w[-1]) else "no",
    "limit-5-steps-2": lambda w: "wait" if w[-1] == "request" and w[-5:].count("request") > 2 else "ok",
    "largest-since-reset": lambda w: max(since_reset(w), default="0"),
    "quoted-32": lambda w: "in" if w.count('"') & 1 else "out",
    "pointer-chase": chase,
    "times-5-base-8": lambda w: str(int(w[-1]) * 5 % 8),
    "count-ab-to-8": lambda w: str(len("".join(w).split("ab")) - 1),
    "booked-4": booked,
    "depth-3": lambda w: str(w.count("(") - w.count(")")),
    "histogram-8": lambda w: str(w.count(w[-1])),
    "new-or-old": lambda w: "old" if w[-1] in w[:-1] else "new",
    "stack-2-kinds-5-deep": stack,
    "needle-times-8": lambda w: str(w[2:].count(w[0])) if ":" in w else "0",
}


@pytest.mark.parametrize("name", SAYS)
def test_what_a_description_says_is_what_is_answered(name: str) -> None:
    for word, answers in entries()[name].sequences(30, 123):
        assert [SAYS[name](word[: t + 1]) for t in range(len(word))] == answers, word


def test_the_oracles_source_runs_by_itself() -> None:
    """What is printed is the oracle: executed alone it gives the same answers, for a function, a machine, an object."""
    names = {"queue-6": "_queue", "which-leads-16": None, "at-least-10": "Counted"}
    for name, function in names.items():
        code = oracle_source(entries()[name])
        assert compile(code, name, "exec"), name
        assert function is None or function in code
    scope: dict = {}
    exec(oracle_source(entries()["queue-6"]), scope)
    for word, answers in entries()["queue-6"].sequences(20, 3):
        assert [scope["_queue"](word[: t + 1]) for t in range(len(word))] == answers


def test_every_circuit_shows_its_code_and_that_of_its_oracle() -> None:
    for entry in entries().values():
        assert "\n" in oracle_source(entry) and source(entry), entry.name
