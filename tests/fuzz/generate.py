"""Random programs."""

from __future__ import annotations

from tests.fuzz.kinds import Draw, Kind
from tests.fuzz.language import draw_language
from tests.fuzz.program import Node, Program
from tests.fuzz.words import DECISIONS, READOUTS, REALS, SOURCES, STEPS, WORDS
from tests.fuzz.words.word import compared, fits

ALPHABETS = ("a", "ab", "abc", "abc", "abc", "abcd", "abcde", "abcdefg")
FIRST_CHOICE = {
    "flag": "is_in",
    "flags": "is_in",
    "int": "number",
    "ints": "number",
    "symbol": "one_hot",
    "code": "code",
}
WIDEST = 40
MORE = 4_000_000
"""Programs from this number on also draw real words and decisions; those before stay what they were when counted."""
PARTLY = 5_000_000
"""Programs from this number on join lines, and of what is made of them only some numbers are read."""
SCALED = 9_000_000
"""Programs from this number on have numbers of two sizes, of any that a float32 holds or nearly so."""
EXPONENTS = range(-130, 128)
CARELESS = (
    "any",
    "one",
    "flag",
    "flags",
    "int",
    "ints",
    "numbers",
    "symbol",
    "=any",
    "=1any",
    "=symbol",
    "=flags",
    "=numbers",
)


class Growing:
    """A program line by line."""

    def __init__(self, draw: Draw):
        self.draw = draw
        self.nodes: list[Node] = []

    def add(self, word: str, inputs: tuple[int, ...] = ()) -> int:
        kinds = [self.nodes[i].kind for i in inputs]
        params = WORDS[word].draw(self.draw, kinds)
        self.nodes.append(Node(word, inputs, params, WORDS[word].gives(kinds, params)))
        return len(self.nodes) - 1

    def source(self, wanted: str) -> int:
        return self.add(FIRST_CHOICE.get(wanted.lstrip("=1")) or self.draw.one(list(SOURCES)))

    def input(self, wanted: str, beside: Kind | None) -> int | None:
        """A line that fits, the latest ones most likely; a new source where none does; None where none can."""
        draw = self.draw
        if self.nodes and wanted in CARELESS and draw.chance(draw.careless):
            return draw.below(len(self.nodes))
        known = [i for i, node in enumerate(self.nodes) if fits(node.kind, wanted, beside, len(draw.letters))]
        if not known or (draw.chance(0.2) and not wanted.startswith("=")):
            new = self.source(wanted)
            if fits(self.nodes[new].kind, wanted, beside, len(draw.letters)):
                return new
        if not known:
            return None
        return known[-1 - min(draw.below(len(known)), draw.below(len(known)))]

    def step(self, words: list[str]) -> int | None:
        """One more word over what there is."""
        word = self.draw.one(words)
        inputs: list[int] = []
        for wanted in WORDS[word].takes:
            found = self.input(wanted, self.nodes[inputs[compared(wanted)]].kind if inputs else None)
            if found is None:
                return None
            inputs.append(found)
        kinds = [self.nodes[i].kind for i in inputs]
        if sum(kind.width for kind in kinds) > WIDEST:
            return None
        return self.add(word, tuple(inputs))

    def joined_and_parted(self, words: list[str]) -> None:
        """Up to three times two lines side by side, a word that likely reads them, and a few of its numbers."""
        for _ in range(1 + self.draw.below(3)):
            pair = self.draw.below(len(self.nodes)), self.draw.below(len(self.nodes))
            if sum(self.nodes[i].kind.width for i in pair) <= WIDEST // 2:
                self.add("concatenate", pair)
                self.step(words)
                self.add(self.draw.one(("lane", "lane", "lanes")), (len(self.nodes) - 1,))


def generate(seed: int) -> Program:
    """The program of a seed."""
    draw = Draw(seed)
    draw.letters = tuple(draw.one(ALPHABETS))
    if seed >= SCALED:
        draw.scales = (2.0 ** draw.one(EXPONENTS), 2.0 ** draw.one(EXPONENTS))
    growing = Growing(draw)
    for _ in range(1 + draw.below(3)):
        growing.source("any")
    steps = list(STEPS) if seed < MORE else list(STEPS) + 3 * list(REALS)
    for _ in range(draw.one((1, 2, 3, 4, 5, 6, 8, 10))):
        growing.step(steps)
    if seed >= PARTLY:
        growing.joined_and_parted(steps)
    read = {i for node in growing.nodes for i in node.inputs}
    outputs = tuple(i for i in range(len(growing.nodes)) if i not in read)
    if draw.chance(0.25):
        logits = growing.step(list(READOUTS))
        if logits is not None and seed >= MORE and draw.chance(0.5):
            decided = growing.step(list(DECISIONS))
            logits = logits if decided is None else decided
        outputs = outputs if logits is None else (logits,)
    widest = draw.one((WIDEST, len(draw.letters)))  # a language model has a score for each letter and no more
    while sum(growing.nodes[i].kind.width for i in outputs) > widest and len(outputs) > 1:
        outputs = outputs[1:]
    end = draw.one(draw.letters) if draw.chance(0.05) else None
    language = draw_language(draw)
    reads_memory = any(node.word.startswith("memory") for node in growing.nodes)
    most = draw.one((1, 2, 3)) if reads_memory and draw.chance(0.5) else None
    return Program(language, tuple(growing.nodes), outputs, end, most).trimmed()
