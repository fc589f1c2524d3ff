"""Can this still become a flat JSON object? `yes` while the tokens so far begin one, `no` for ever after they do not.

The tokens are `{`, `}`, `:`, `,`, a string `s` and a number `n`. The circuit looks two tokens back and lists what may
not follow what. A chain of flags costs one block, however long it is.
"""

from collections.abc import Sequence

from compiler import Alphabet, Circuit, InputLanguage, Tokens, constant, emit, present

ALPHABET = Alphabet.of("{", "}", ":", ",", "s", "n", "yes", "no")
PARTS = ("{", "}", ":", ",", "s", "n")
LANGUAGE = InputLanguage.of(ALPHABET, "text", [("text", "text", PARTS)], 24, "up to 24 parts of flat JSON")


def circuit() -> Circuit:
    x = Tokens(ALPHABET)
    opens, closes, colon, comma, string, number = (x.is_in(part) for part in PARTS)
    started = constant(1).shift(1)
    after_key = string.shift(1) & (opens.shift(2) | comma.shift(2))
    after_value = (string.shift(1) | number.shift(1)) & colon.shift(2)
    wrong = (
        (~opens & ~started)
        | (opens & started)
        | (opens.shift(1) & ~string & ~closes)
        | (comma.shift(1) & ~string)
        | (colon.shift(1) & ~string & ~number)
        | (after_key & ~colon)
        | (after_value & ~comma & ~closes)
        | closes.shift(1)
    )
    return Circuit("flat-json", emit(ALPHABET, (present(wrong), "no"), otherwise="yes"), LANGUAGE)


def plain_python(word: Sequence[str]) -> str:
    """What the circuit must answer after the last token of the word."""
    may_follow = {
        "start": {"{": "object"},
        "object": {"s": "key", "}": "end"},
        "key": {":": "colon"},
        "colon": {"s": "value", "n": "value"},
        "value": {",": "comma", "}": "end"},
        "comma": {"s": "key"},
        "end": {},
    }
    state = "start"
    for part in word:
        if part not in may_follow[state]:
            return "no"
        state = may_follow[state][part]
    return "yes"
