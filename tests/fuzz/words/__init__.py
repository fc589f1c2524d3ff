"""Every word of the language by its name."""

from tests.fuzz.words import linear, logic, past, readouts, sources, tables
from tests.fuzz.words.word import Word

SOURCES: dict[str, Word] = sources.WORDS
STEPS: dict[str, Word] = linear.WORDS | tables.WORDS | logic.WORDS | past.WORDS
READOUTS: dict[str, Word] = readouts.WORDS
WORDS: dict[str, Word] = SOURCES | STEPS | READOUTS
