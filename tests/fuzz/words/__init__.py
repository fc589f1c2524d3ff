"""Every word of the language by its name."""

from tests.fuzz.words import past, pointwise, readouts, sources
from tests.fuzz.words.word import Word

SOURCES: dict[str, Word] = sources.WORDS
STEPS: dict[str, Word] = pointwise.WORDS | past.WORDS
READOUTS: dict[str, Word] = readouts.WORDS
WORDS: dict[str, Word] = SOURCES | STEPS | READOUTS
