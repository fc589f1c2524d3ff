"""`construct reproduce graft`: a small language model of real text learns to recall, with and without a circuit.

The text is the documentation that ships with Python: the docstrings of its own modules, byte by byte. Between pieces of
text stand recall episodes: a chain of distinct symbols, drawn anew, and then the same chain again from a random place.
From its second symbol on the second pass can be predicted, by the rule of induction heads; nothing else about it can.

Three models see the same batches for the same number of steps: the host alone, the host with a side branch that holds
the induction circuit (its projections start at zero), and the trained host into which the circuit is grafted afterwards
as a direct sum, without any training.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

SYMBOLS = 16
FIRST = 128  # ids of the symbols: behind ASCII
VOCAB = FIRST + SYMBOLS
CHAIN, TEXT = 10, 28  # symbols of a chain; characters before and after an episode
LENGTH = 2 * TEXT + 2 * CHAIN
BATCH, SEEDS, STEPS = 8, 3, 300
SHOWN = (*range(5, 30, 5), *range(50, 10_000, 50))  # the steps at which a model is looked at
AFTERWARDS = "trained host, circuit grafted in"
MODULES = ("argparse", "ast", "collections", "csv", "datetime", "functools", "json", "logging", "random", "socket")
MODULES += (
    "statistics",
    "string",
    "subprocess",
    "tempfile",
    "textwrap",
    "threading",
    "tokenize",
    "unittest",
    "zipfile",
)


@dataclass(frozen=True)
class Point:
    """Of one model after so many steps: nats a character of unseen text, and the share of recalls that are right."""

    model: str
    seed: int
    step: int
    text: float
    recall: float


def corpus() -> np.ndarray:
    """The docstrings of modules that ship with Python, as ASCII codes: (characters,) int64."""
    library = Path(ast.__file__).parent
    told = []
    for name in MODULES:
        for path in sorted([library / f"{name}.py", *(library / name).glob("*.py")]):
            if path.is_file():
                told += _docstrings(ast.parse(path.read_text("utf-8")))
    text = " ".join(" ".join(told).split())
    return np.frombuffer(text.encode("ascii", "ignore"), dtype=np.uint8).astype(np.int64)


def _docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            yield from filter(None, [ast.get_docstring(node)])


def batch(text: np.ndarray, rng: np.random.Generator, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(ids, whether the next token can be recalled), both (count, LENGTH)."""
    rows, marks = [], []
    for _ in range(count):
        before, after = (text[s : s + TEXT] for s in rng.integers(0, len(text) - TEXT, 2))
        chain = FIRST + rng.permutation(SYMBOLS)[:CHAIN]
        start = int(rng.integers(CHAIN - 2))
        again = np.concatenate([chain[start:], chain[:start]])  # the chain closes where it began
        rows.append(np.concatenate([before, chain, again, after]))
        mark = np.zeros(LENGTH, dtype=bool)
        mark[TEXT + CHAIN : TEXT + 2 * CHAIN - start - 1] = True
        marks.append(mark)
    return torch.from_numpy(np.array(rows)), torch.from_numpy(np.array(marks))


def host(seed: int) -> Any:
    """A `MambaForCausalLM` of 64 lanes and 2 layers."""
    from transformers import MambaConfig, MambaForCausalLM

    torch.manual_seed(seed)
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "state_size": 8, "vocab_size": VOCAB}
    return MambaForCausalLM(MambaConfig(**sizes, bos_token_id=None, eos_token_id=None, pad_token_id=None))


def circuit() -> Any:
    """What followed the last time, over the symbols."""
    from compiler import Alphabet, Circuit, InputLanguage, Tokens, memory, readout_one_hot

    letters = Alphabet.of(s=SYMBOLS)
    x = Tokens(letters).one_hot()
    follower = memory.write(key=x.shift(1), value=x, policy="last").read(x)
    return Circuit("induction", readout_one_hot(follower, letters), InputLanguage.everything(letters, 4096))


def symbols() -> dict[str, int]:
    return {f"s{i}": FIRST + i for i in range(SYMBOLS)}


@torch.no_grad()
def measured(model: Any, name: str, seed: int, step: int, text: np.ndarray) -> Point:
    """On 32 rows that no model was trained on."""
    ids, recalled = batch(text, np.random.default_rng(99), 32)
    logits = model.eval()(ids).logits[:, :-1].float()
    wanted = ids[:, 1:]
    nats = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none").view(
        wanted.shape
    )
    plain = (ids[:, :-1] < FIRST) & (wanted < FIRST)
    right = (logits.argmax(-1) == wanted)[recalled[:, :-1]]
    return Point(name, seed, step, float(nats[plain].mean()), float(right.float().mean()))


def train(
    model: Any, name: str, seed: int, text: np.ndarray, steps: int, told: Callable[[int], None]
) -> Iterator[Point]:
    """AdamW on whatever of the model is trainable; a point every few steps."""
    cut = len(text) * 9 // 10
    rng = np.random.default_rng(seed)
    groups: dict[bool, list[torch.nn.Parameter]] = {True: [], False: []}
    for key, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups[key in ("write", "say")].append(parameter)
    adam = torch.optim.AdamW(
        [{"params": groups[False], "lr": 4e-3}, {"params": groups[True], "lr": 4e-2}], weight_decay=0.0
    )
    yield measured(model, name, seed, 0, text[cut:])
    for step in range(1, steps + 1):
        ids, _ = batch(text[:cut], rng, BATCH)
        model.train()
        logits = model(ids, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([p for g in groups.values() for p in g], 1.0)
        adam.step()
        told(1)
        if step in SHOWN or step == steps:
            yield measured(model, name, seed, step, text[cut:])


def points(seeds: Iterable[int], steps: int, told: Callable[[int], None]) -> Iterator[Point]:
    """Every point of the experiment: host alone, host with a branch, and the trained host with a direct sum."""
    from compiler.graft import branch, graft
    from compiler.runtime import torch_only_transformers

    torch_only_transformers()
    text = corpus()
    cut = len(text) * 9 // 10
    for seed in seeds:
        alone = host(seed)
        yield from train(alone, "host", seed, text, steps, told)
        joined = branch(host(seed), circuit(), symbols(), where="both")
        yield from train(joined, "host with a branch", seed, text, steps, told)
        grafted = graft(alone.eval(), circuit(), tokens=symbols())
        yield measured(grafted.model, AFTERWARDS, seed, steps, text[cut:])


def kept(found: Sequence[Point]) -> bool:
    """Whether grafting into a trained host left its text as it was, to the last bit, and recalls everything."""
    last = {(point.model, point.seed): point for point in found}
    pairs = [(point, last["host", seed]) for (model, seed), point in last.items() if model == AFTERWARDS]
    return bool(pairs) and all(after.text == before.text and after.recall == 1 for after, before in pairs)
