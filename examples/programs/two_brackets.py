"""BRACKETS OF TWO TYPES (Dyck-2): a stack, as a memory under the depth that keeps the last write.

At every position the circuit answers the bracket that closes the innermost open one. The language opens at most DEPTH.
"""

from compiler import Alphabet, Circuit, InputLanguage, Tokens, memory, readout_one_hot

OPEN, CLOSED = ("(", "["), (")", "]")
BRACKETS = Alphabet.of(*OPEN, *CLOSED)
DEPTH = 3


def circuit(depth: int = DEPTH, max_length: int = 12) -> Circuit:
    x = Tokens(BRACKETS)
    opens, closes = x.is_in(OPEN), x.is_in(CLOSED)
    level = (opens - closes).cumsum().one_hot(depth + 1)
    stack = memory.write(level, x.one_hot(OPEN), when=opens, policy="last", name="stack")
    edges = [(str(d), str(d + 1), OPEN) for d in range(depth)] + [(str(d + 1), str(d), CLOSED) for d in range(depth)]
    language = InputLanguage.of(BRACKETS, "0", edges, max_length, f"brackets, at most {depth} of them open")
    return Circuit("two-brackets", readout_one_hot(stack.read(level), BRACKETS, CLOSED), language)


def answers(word: list[str]) -> list[str | None]:
    """By a stack; None where nothing is open. Whether a bracket closes the right type, nobody asks."""
    stack: list[str] = []
    result = []
    for letter in word:
        if letter in OPEN:
            stack.append(letter)
        else:
            stack.pop()
        result.append(CLOSED[OPEN.index(stack[-1])] if stack else None)
    return result
