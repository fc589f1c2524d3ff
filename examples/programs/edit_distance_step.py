"""One step of the edit-distance recurrence, with its look-ups (after paper B, Theorem 3).

The sequence holds both words and the table so far, row by row:

    a b a | b b ; 1 2 ; 1 2 ; 1 1 ; …

Row 0 is 1 … n; the border D(r, 0) = r is left out. At every position of the table the
circuit answers the entry that comes next, D(r, j + 1), from its three neighbours.
"""

from compiler import Alphabet, Circuit, InputLanguage, Stream, Tokens, count, memory, minimum, present, select

LONGEST = 3
LETTERS = ("a", "b")
DIGITS = tuple(str(i) for i in range(LONGEST + 1))
ALPHABET = Alphabet.of("|", ";", letter=LETTERS, digit=DIGITS)


def numbered(index: Stream) -> Stream:
    return index.one_hot(LONGEST + 2)


def next_entry() -> Stream:
    x = Tokens(ALPHABET)
    letter, is_letter, is_entry = x.one_hot("letter"), x.is_in("letter"), x.is_in("digit")
    bar, new_row, value = x.is_in(["|"]), x.is_in([";"]), x.number({d: int(d) for d in DIGITS})

    column = count(is_entry, reset=new_row)  # entries of this row so far
    row = new_row.cumsum() - 1
    place = count(is_letter, reset=bar)  # of a letter in its word
    second = present(bar)

    first_word = memory.write(numbered(place), letter, when=is_letter & ~second, policy="last")
    second_word = memory.write(numbered(place), letter, when=is_letter & second, policy="last")
    differ = first_word.read(numbered(row)) != second_word.read(numbered(column + 1))

    last_row = memory.write(numbered(column), value, when=is_entry, policy="last")
    up = last_row.read(numbered(column + 1))
    left = select(column == 0, row, value)
    diagonal = select(column == 0, row - 1, up.shift(1))
    return select(row == 0, column + 1, minimum(minimum(up, left) + 1, diagonal + differ))


def circuit() -> Circuit:
    edges = [
        ("first", "first", "letter"),
        ("first", "second", ["|"]),
        ("second", "second", "letter"),
        ("second", "table", [";"]),
        ("table", "table", (";", *DIGITS)),
    ]
    language = InputLanguage.of(ALPHABET, "first", edges, 2 * LONGEST + 2 + (LONGEST + 1) ** 2, "two words and a table")
    return Circuit("edit-distance", next_entry(), language)


def table(first: str, second: str) -> list[list[int]]:
    """All rows D(r, 0 … n), by the textbook."""
    rows = [list(range(len(second) + 1))]
    for r, a in enumerate(first, start=1):
        row = [r]
        for j, b in enumerate(second, start=1):
            row.append(min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b)))
        rows.append(row)
    return rows
