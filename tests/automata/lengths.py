"""Lengths at every border, of checkpoints for Gated DeltaNet: python -m tests.automata.lengths [NAME …] [--json]

Each checkpoint is saved, and opened by transformers alone in float32 and in bfloat16. Every answer is held to a few
lines of Python, over whole texts of the lengths of WHOLE, a prompt up to each border and cached steps behind it, a
prompt in two pieces, texts of unequal lengths padded on the left in one batch and steps behind those, and what
`generate` writes, with its cache and without. Exit code 1 where an answer was wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from compiler import Alphabet, Circuit, Compiled, InputLanguage, Tokens, compile, memory, permute, readout_one_hot
from compiler.language.words import latch
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.languages import NAMED
from constructions.automata.random_automata import drawn
from constructions.selectivity.mqar import MQAR
from tests.automata.groups import alternating, group_table, symmetric

Answer = Callable[[list[str]], list[str | None]]

WHOLE = (1, 2, 3, 4, 5, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1025)
BORDERS = (1, 2, 3, 4, 5, 62, 63, 64, 65, 66, 127, 128, 129, 256, 257)
RAGGED = (1, 2, 5, 63, 64, 65, 127, 130)
STEPS = 4
LETTERS = Alphabet.of("a", "b", "c", "d", "e")
RANDOM = (0, 1, 3, 21)


@dataclass(frozen=True)
class Case:
    """A circuit, what it answers (None: nothing is promised there), and texts that it is asked about."""

    compiled: Compiled
    answers: Answer
    drawn: Callable[[random.Random, int], list[str]]


def cases() -> dict[str, Callable[[str], Case]]:
    """By name; each is compiled for a dtype."""
    tables = {name: NAMED[name].make() for name in ("parity", "cycle-5", "s3", "a5", "at-most-two-a", "ends-with-abb")}
    tables |= {f"random {number}": drawn(number) for number in RANDOM}
    tables |= {"S_3, six letters": group_table(symmetric(3)), "A_5, 60 letters": group_table(alternating(5))}
    found = {name: lambda dtype, table=table: _of_table(table, dtype) for name, table in tables.items()}
    for name, (build, answers) in OWN.items():
        for target in ("gated-deltanet", "gated-deltanet-qwen"):
            if name != "permute" or target == "gated-deltanet":
                found[f"{name}, {target}"] = lambda dtype, b=build, a=answers, t=target: _own(b, a, t, dtype)
    for target in ("gated-deltanet", "gated-deltanet-qwen"):
        found[f"mqar, {target}"] = lambda dtype, t=target: _mqar(t, dtype)
    return found


def _of_table(table: Any, dtype: str) -> Case:
    construction = Automaton(table=table_json(table), arch="gated-deltanet", dtype=dtype)

    def walk(text: list[str]) -> list[str | None]:
        state, said = table.start, []
        for letter in text:
            state = table.following[state][table.letters.index(letter)]
            said.append(table.outputs[state])
        return said

    return Case(construction.compiled(), walk, lambda rng, count: rng.choices(table.letters, k=count))


def _permute() -> Circuit:
    x = Tokens(LETTERS)
    state = permute(0, x.one_hot(["a", "b"]), [(0, 1), (1, 2)], x.one_hot(["c", "d", "e"]))
    return Circuit("permute", readout_one_hot(state, LETTERS, ["a", "b", "c"]), _everything())


def _permuted(text: list[str]) -> list[str | None]:
    place, said = 0, []
    for letter in text:
        pair = {"a": (0, 1), "b": (1, 2)}.get(letter)
        if pair is None:
            place = "cde".index(letter)
        elif place in pair:
            place = pair[1 - pair.index(place)]
        said.append("abc"[place])
    return said


def _resets() -> Circuit:
    x = Tokens(LETTERS)
    return Circuit("resets", readout_one_hot(latch(x.one_hot(), x.is_in(["a", "b"])), LETTERS), _everything())


def _reset(text: list[str]) -> list[str | None]:
    last, said = None, []
    for letter in text:
        last = letter if letter in "ab" else last
        said.append(last)
    return said


def _deletion() -> Circuit:
    x = Tokens(LETTERS)
    held = memory.write(key=x.one_hot().shift(1), value=x.one_hot(), policy="last").delete(x.is_in("e"))
    return Circuit("deletion", readout_one_hot(held.read(x.one_hot()), LETTERS), _everything())


def _deleted(text: list[str]) -> list[str | None]:
    kept: dict[str, str | None] = {}
    said, before = [], None
    for letter in text:
        if before is not None:
            kept[before] = None if letter == "e" else letter
        said.append(kept.get(letter))
        before = letter
    return said


OWN: dict[str, tuple[Callable[[], Circuit], Answer]] = {
    "permute": (_permute, _permuted),
    "resets": (_resets, _reset),
    "deletion": (_deletion, _deleted),
}


def _everything() -> InputLanguage:
    return InputLanguage.everything(LETTERS, 10**6)


def _own(build: Callable[[], Circuit], answers: Answer, target: str, dtype: str) -> Case:
    return Case(compile(build(), target, dtype), answers, lambda rng, count: rng.choices(LETTERS.tokens, k=count))


def _mqar(target: str, dtype: str) -> Case:
    """Keys that are bound again: the last value is the answer. Pairs and queries, in any order."""
    built = MQAR(kappa=4, vocab=8, arch=target, write="last", dtype=dtype).compiled()
    language = built.source.language

    def texts(rng: random.Random, count: int) -> list[str]:
        row = language.sample(1, count, rng.randrange(2**31))[0]
        return [language.alphabet.tokens[i] for i in row]

    return Case(built, _last_value, texts)


def _last_value(text: list[str]) -> list[str | None]:
    bound: dict[str, str] = {}
    said: list[str | None] = []
    for i, token in enumerate(text):
        if i and token[0] == "v" and text[i - 1][0] == "k":
            bound[text[i - 1]] = token
        said.append(bound.get(token) if token[0] == "k" else None)
    return said


class Attack:
    """One case by transformers, and how many answers of each kind were asked, and which were wrong."""

    def __init__(self, case: Case, model: Any, seed: int):
        self.case, self.model, self.rng = case, model, random.Random(seed)
        self.asked: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.index = {token: i for i, token in enumerate(case.compiled.source.token_alphabet.tokens)}

    def run(self) -> None:
        with torch.no_grad():
            for length in WHOLE:
                texts = self.texts([length] * 2)
                self.compare(f"whole {length}", texts, self.model(self.ids(texts)).logits, 0)
            for border in BORDERS:
                texts = self.texts([border + STEPS] * 2)
                self.steps(f"steps after {border}", texts, border)
                self.pieces(f"pieces of {border} and {STEPS}", texts, border)
            self.padded()
            self.generated()

    def texts(self, lengths: Sequence[int]) -> list[list[str]]:
        return [self.case.drawn(self.rng, length) for length in lengths]

    def ids(self, texts: list[list[str]]) -> torch.Tensor:
        """Padded on the left."""
        most, pad = max(map(len, texts)), self.model.config.pad_token_id
        return torch.tensor([[pad] * (most - len(t)) + [self.index[w] for w in t] for t in texts])

    def compare(self, kind: str, texts: list[list[str]], logits: torch.Tensor, first: int) -> None:
        """logits: (batch, time, vocabulary) from position `first` of the padded batch on."""
        said, most = logits.argmax(-1), max(map(len, texts))
        for text, row in zip(texts, said.tolist(), strict=True):
            wanted = [None] * (most - len(text)) + self.case.answers(text)
            for place, token in enumerate(row, start=first):
                if wanted[place] is not None:
                    self.asked[kind.split()[0]] += 1
                    if token != self.index[wanted[place]]:
                        self.wrong.append(f"{kind}: position {place} of {len(text)}")

    def steps(self, kind: str, texts: list[list[str]], border: int, mask: torch.Tensor | None = None) -> None:
        ids = self.ids(texts)
        told = {} if mask is None else {"attention_mask": mask[:, :border]}
        out = self.model(ids[:, :border], use_cache=True, **told)
        found = [out.logits]
        for t in range(border, ids.shape[1]):
            told = {} if mask is None else {"attention_mask": mask[:, : t + 1]}
            out = self.model(ids[:, [t]], past_key_values=out.past_key_values, use_cache=True, **told)
            found.append(out.logits)
        self.compare(kind, texts, torch.cat(found, 1), 0)

    def pieces(self, kind: str, texts: list[list[str]], border: int) -> None:
        ids = self.ids(texts)
        first = self.model(ids[:, :border], use_cache=True)
        then = self.model(ids[:, border:], past_key_values=first.past_key_values, use_cache=True)
        self.compare(kind, texts, torch.cat([first.logits, then.logits], 1), 0)

    def padded(self) -> None:
        """Texts of unequal lengths in one batch, in one pass, and with the last letters as steps."""
        texts = self.texts(RAGGED)
        ids = self.ids(texts)
        mask = torch.tensor([[0] * (ids.shape[1] - len(t)) + [1] * len(t) for t in texts])
        self.compare("padded", texts, self.model(ids, attention_mask=mask).logits, 0)
        longer = self.texts([length + STEPS for length in RAGGED])
        most = max(map(len, longer))
        mask = torch.tensor([[0] * (most - len(t)) + [1] * len(t) for t in longer])
        self.steps("padded, then steps", longer, most - STEPS, mask)

    def generated(self) -> None:
        """What is written is what the cacheless model would write, across the border of a chunk."""
        texts = self.texts([58, 61, 62])
        ids = self.ids(texts)
        mask = torch.tensor([[0] * (62 - len(t)) + [1] * len(t) for t in texts])
        options = {"max_new_tokens": 8, "do_sample": False, "eos_token_id": None, "attention_mask": mask}
        cached = self.model.generate(ids, **options)
        plain = self.model.generate(ids, use_cache=False, **options)
        self.asked["generated"] += cached.numel() - ids.numel()
        if not torch.equal(cached, plain):
            self.wrong.append("generated: another text with a cache than without one")


def attacked(name: str, case: Case, dtype: str) -> dict[str, Any]:
    """What became of one checkpoint in one dtype."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "checkpoint"
        case.compiled.save(place)
        model = AutoModelForCausalLM.from_pretrained(place, dtype=getattr(torch, dtype)).eval()
    attack = Attack(case, model, seed=len(name))
    attack.run()
    told = {"name": name, "class": type(model).__name__, "dtype": dtype, "asked": dict(attack.asked)}
    return told | {"wrong": attack.wrong}


def results(names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """One for each checkpoint and dtype; those that a dtype refuses say why."""
    from compiler.errors import CompileError

    for name, build in cases().items():
        if not names or name in names:
            for dtype in ("float32", "bfloat16"):
                try:
                    case = build(dtype)
                except CompileError as refusal:
                    yield {"name": name, "dtype": dtype, "refused": str(refusal), "wrong": []}
                else:
                    yield attacked(name, case, dtype)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(cases())}; by default all")
    parser.add_argument("--json", action="store_true", help="one object a line")
    asked = parser.parse_args(arguments)
    total = wrong = 0
    for result in results(asked.names):
        count = sum(result.get("asked", {}).values())
        total, wrong = total + count, wrong + len(result["wrong"])
        shown = f"{count} answers, {len(result['wrong'])} wrong {result['wrong'][:3]} {result.get('refused', '')}"
        print(json.dumps(result) if asked.json else f"{result['name']} {result['dtype']}: {shown}", flush=True)
    if not asked.json:
        print(f"{total} answers, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
