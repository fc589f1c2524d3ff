"""A LIST BACKWARDS: `a b c |` is continued by `c b a .`, from a memory under the place that keeps the last write.

Behind the bar each letter takes one from the place that is asked next, down to none, which is the end.
"""

from compiler import Alphabet, Circuit, InputLanguage, Tokens, concatenate, memory, present, readout_one_hot

LETTERS, BAR, END = ("a", "b"), "|", "."
ALPHABET = Alphabet.of(BAR, END, letter=LETTERS)
LONGEST = 3


def circuit(longest: int = LONGEST) -> Circuit:
    x = Tokens(ALPHABET)
    letter, behind = x.is_in("letter"), present(x.is_in([BAR]))
    first = letter & ~behind
    left = first.cumsum() - (letter & behind).cumsum()
    held = memory.write(left.one_hot(longest + 1), x.one_hot("letter"), when=first, policy="last", name="held")
    read = held.read(left.one_hot(longest + 1))
    edges = [("list", "list", "letter"), ("list", "back", [BAR]), ("back", "back", "letter")]
    edges += [("back", "end", [END]), ("end", "end", [END])]
    language = InputLanguage.of(ALPHABET, "list", edges, 2 * longest + 2, "a list, a bar, and what is written behind")
    scores = readout_one_hot(concatenate(left <= 0, read), ALPHABET, [END, *LETTERS])
    return Circuit("backwards", scores, language, end=END)


def answers(word: list[str]) -> list[str | None]:
    """What comes next behind the bar, where everything was right so far and the list is not too long."""
    if BAR not in word:
        return [None] * len(word)
    at = word.index(BAR)
    right = [*word[:at][::-1], END]
    written = word[at + 1 :]
    asked = [right[t] if at <= LONGEST and written[:t] == right[:t] != right else None for t in range(len(written) + 1)]
    return [*[None] * at, *asked]
