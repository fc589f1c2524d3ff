"""Every word of the language by its name."""

from tests.fuzz.words import linear, logic, past, readouts, reals, sources, tables
from tests.fuzz.words.word import Word

SOURCES: dict[str, Word] = sources.WORDS
STEPS: dict[str, Word] = linear.WORDS | tables.WORDS | logic.WORDS | past.WORDS
REALS: dict[str, Word] = reals.WORDS
READOUTS: dict[str, Word] = readouts.WORDS
DECISIONS: dict[str, Word] = readouts.DECISIONS
WORDS: dict[str, Word] = SOURCES | STEPS | REALS | READOUTS | DECISIONS
