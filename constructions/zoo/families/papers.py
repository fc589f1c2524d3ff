"""Tasks of the papers and of the MAD suite, each at sizes that differ in what they ask of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from constructions.construction import Construction
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.phonebook import Phonebook
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.polynomials.count_in_row import CountInRow
from constructions.selectivity.absolute_time import AbsoluteTime
from constructions.selectivity.fuzzy_recall import FuzzyRecall
from constructions.selectivity.in_context_recall import InContextRecall
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.mad_compression import MadCompression
from constructions.selectivity.mad_copying import MadCopying
from constructions.selectivity.mad_memorization import MadMemorization
from constructions.selectivity.mqar import MQAR
from constructions.token_selection.recall import AssociativeRecall
from constructions.token_selection.selection import TokenSelection
from constructions.token_selection.unique_induction import UniqueInduction
from constructions.zoo.entry import Family, FromPaper

_RECALL = "at a key, the value that stood right behind it before"
_PLACE = "one token, from a place that is named"


def _of(name: str, says: str, construction: Callable[..., Construction], **given: Any) -> FromPaper:
    return FromPaper(name, says, lambda: construction(**given))


FAMILY = Family(
    "papers",
    "tasks of the papers and of the MAD suite, at sizes that differ in what they ask of a model",
    [
        _of("mqar-4", f"{_RECALL}: 4 keys, 8 values, one pair each", MQAR, kappa=4, vocab=8),
        _of("mqar-16", f"{_RECALL}: 16 keys, 32 values, one pair each", MQAR, kappa=16, vocab=32),
        _of("mqar-first", f"{_RECALL}, the first of several", MQAR, kappa=8, vocab=16, write="first"),
        _of("mqar-last", f"{_RECALL}, the last of several", MQAR, kappa=8, vocab=16, write="last"),
        _of("mqar-mamba2", f"{_RECALL}: 8 keys, 16 values, by Mamba-2", MQAR, kappa=8, vocab=16, arch="mamba2"),
        _of("induction-4", "what followed the present token the last time, of 4 tokens", InductionHeads, vocab=4),
        _of("induction-16", "what followed the present token the last time, of 16 tokens", InductionHeads, vocab=16),
        _of(
            "induction-codes",
            "what followed the present token the last time, of 16 tokens, which are carried as codes",
            InductionHeads,
            vocab=16,
            codes=True,
        ),
        _of(
            "induction-mamba2",
            "what followed the present token the last time, of 8 tokens, by Mamba-2",
            InductionHeads,
            vocab=8,
            arch="mamba2",
        ),
        _of("keep-1st", "the first token of the text, of 8", KeepNth, n=1, vocab=8),
        _of("keep-5th", "the fifth token of the text, of 8", KeepNth, n=5, vocab=8),
        _of("absolute-time-8", "the number of the position, up to 8", AbsoluteTime, horizon=8),
        _of("absolute-time-32", "the number of the position, up to 32", AbsoluteTime, horizon=32),
        _of("count-in-row-4", "how many ones there are in a row, up to 4", CountInRow, largest=4, length=64),
        _of("count-in-row-32", "how many ones there are in a row, up to 32", CountInRow, largest=32, length=128),
        _of("mad-recall", "MAD's in-context recall: the value of the last key", InContextRecall, length=64),
        _of("mad-recall-noise", "the same among noise tokens", InContextRecall, noise=4, share=0.2, length=64),
        _of("mad-fuzzy-recall", "MAD's fuzzy recall: keys and values of several tokens", FuzzyRecall, length=32),
        _of("mad-copying", "MAD's copying: 8 tokens, behind the copy token", MadCopying, n=8, length=64),
        _of("mad-selective", "the same with blanks among the tokens", MadCopying, n=8, length=64, selective=True),
        _of("mad-compression", "MAD's compression: a token by its place, of 8", MadCompression, n=8, questions=8),
        _of("mad-memorization", "MAD's memorization: a fixed value for each of 31 keys", MadMemorization, vocab=64),
        _of("copy-string", "the text in front of the bar, written again behind it", Copy, form="string", n=8),
        _of("copy-delay", "the token of four positions back", Copy, form="delay", n=4),
        _of("copy-pointer", f"{_PLACE} by a token of its own", Copy, form="pointer", n=6),
        _of("copy-place", f"{_PLACE} by every token", Copy, form="place", n=6),
        _of("selective-copy", "the letters of a text with noise, without the noise", SelectiveCopy, n=4, length=12),
        _of(
            "phonebook", "the number of a name in a book of up to two entries", Phonebook, names=4, entries=2, digits=2
        ),
        _of("selection-angle", "the value whose angle fits the query best", TokenSelection, size=8, length=12),
        _of("selection-signs", "the same for vectors of ±1", TokenSelection, keys="signs", size=3, length=12),
        _of("recall-first", f"{_RECALL}, keys that repeat", AssociativeRecall, keys=4, values=4, pairs=4),
        _of(
            "recall-distinct", f"{_RECALL}, distinct keys", AssociativeRecall, keys=6, values=4, pairs=6, distinct=True
        ),
        _of(
            "unique-induction",
            "what followed the earlier copies of a token, where that was one and the same",
            UniqueInduction,
            vocab=6,
            length=12,
        ),
    ],
)
