"""A queue: letters come in, and at each `pop` the oldest letter that is still in comes out; `-` where there is none.

The queue never moves anything. The n-th letter is written into a keyed memory under the key n, and the n-th `pop` that
found a letter reads the key n. How many pops came to nothing is the largest number by which pops were ever ahead of
letters, so a running maximum takes the place of a recurrence.
"""

from collections.abc import Sequence

from compiler import Alphabet, Circuit, InputLanguage, Tokens, emit, memory, running_max

ALPHABET = Alphabet.of("a", "b", "c", "pop", "-")
LONGEST = 12
LANGUAGE = InputLanguage.of(ALPHABET, "work", [("work", "work", ("a", "b", "c", "pop"))], LONGEST, "letters and pops")


def circuit() -> Circuit:
    x = Tokens(ALPHABET)
    letter, pop = x.is_in(("a", "b", "c")), x.is_in("pop")
    pushes, pops = letter.cumsum().named("pushes"), pop.cumsum().named("pops")
    served = (pops - running_max((pops - pushes).relu(), when=pop)).named("served")
    stored = memory.write(pushes.one_hot(LONGEST + 1), x.one_hot("a", "b", "c"), when=letter, name="stored")
    oldest = stored.read(served.one_hot(LONGEST + 1))
    found = pop & (served > served.shift(1))
    rules = ((found & (oldest[i] >= 1), name) for i, name in enumerate("abc"))
    return Circuit("queue", emit(ALPHABET, *rules, otherwise="-"), LANGUAGE)


def plain_python(word: Sequence[str]) -> str:
    """What the circuit must answer after the last token of the word."""
    waiting: list[str] = []
    answer = "-"
    for token in word:
        if token != "pop":
            waiting.append(token)
            answer = "-"
        else:
            answer = waiting.pop(0) if waiting else "-"
    return answer
