"""Blocks of extreme numbers, most of them behind a gate of 0: what is accepted computes the exact value, and no NaN.

python -m tests.verify.kernel.extremes FIRST LAST goes through these seeds; kernel and checker are asked of each block,
and what one of them accepts runs in transformers, whole and step by step with a cache.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import AutoModelForCausalLM

from verify.checker.arithmetic.model import prove_arithmetic
from verify.checker.files import read as read_of_checker
from verify.checker.formats import Rejected
from verify.kernel.claims import Ledger, Refused
from verify.kernel.files import read
from verify.kernel.floats import FORMATS, Unproved
from verify.kernel.mixers import Floats
from verify.kernel.model import check_head, lanes_of
from verify.kernel.terms import Terms
from verify.prover.search import Search

WIDTH, HEADS, LETTERS, LENGTH = 4, 2, 2, 10
Tensors = dict[str, np.ndarray]
_FIXED = {"hidden_act": "silu", "pad_vocab_size_multiple": 1, "residual_in_fp32": True, "tie_word_embeddings": False}
_FIXED |= {"use_bias": False, "use_conv_bias": True, "layer_norm_epsilon": 1e-5, "num_hidden_layers": 1, "expand": 1}
_FIXED |= {"hidden_size": WIDTH, "intermediate_size": WIDTH, "vocab_size": LETTERS, "time_step_rank": 1}
_FIXED |= {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}


class Block:
    """A model of one block and two letters, which lane 1 tells apart as 1 and −1; lane 0 is the ballast of the norms,
    and channel 0 that of Mamba-2's. All else is 0 until it is set. The scores are the lanes 2 and 3.
    """

    def __init__(self, kind: str, dtype: str, columns: int = 1, chunk: int = 64, taps: int = 4):
        self.kind, self.dtype, self.columns = kind, dtype, columns
        self.config: dict[str, Any] = {**_FIXED, "model_type": kind, "dtype": dtype, "state_size": columns}
        self.config |= {"conv_kernel": taps, "architectures": [f"Mamba{'2' * (kind == 'mamba2')}ForCausalLM"]}
        rows = WIDTH
        if kind == "mamba2":
            self.config |= {"chunk_size": chunk, "head_dim": WIDTH // HEADS, "n_groups": 1, "num_heads": HEADS}
            self.config |= {"time_step_limit": [0.0, float(FORMATS[dtype].largest)]}
            rows += 2 * columns
        self.level = 256.0 if dtype == "float16" else 16384.0
        shapes = {"in_proj.weight": (WIDTH + rows + HEADS * (kind == "mamba2"), WIDTH), "D": (HEADS,)}
        shapes |= {"conv1d.weight": (rows, 1, taps), "conv1d.bias": (rows,), "out_proj.weight": (WIDTH, WIDTH)}
        if kind == "mamba2":
            shapes |= {"dt_bias": (HEADS,), "A_log": (HEADS,), "norm.weight": (WIDTH,)}
        else:
            shapes |= {"x_proj.weight": (1 + 2 * columns, WIDTH), "dt_proj.weight": (WIDTH, 1), "D": (WIDTH,)}
            shapes |= {"dt_proj.bias": (WIDTH,), "A_log": (WIDTH, columns)}
        self.mixer: Tensors = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        self.first = WIDTH if kind == "mamba2" else 0  # the first convolved row of in_proj
        self.gates = 0 if kind == "mamba2" else WIDTH
        self.mixer["in_proj.weight"][self.gates, 0] = 32 / self.level
        self.mixer["conv1d.bias"][0] = 32
        if kind == "mamba2":
            self.mixer["norm.weight"][:], self.mixer["D"][0] = 512, 1

    def constant(self, row: int, number: float) -> None:
        """A convolved number that is always this one."""
        self.mixer["conv1d.bias"][row] = number

    def at(self, row: int, number: float, sign: int, lag: int = 0) -> None:
        """A convolved number that is this one where the letter `lag` back is the one of this sign, else 0."""
        self.mixer["in_proj.weight"][self.first + row, 1] = sign * number / 2
        self.mixer["conv1d.bias"][row] = number / 2
        self.mixer["conv1d.weight"][row, 0, -1 - lag] = 1

    def tensors(self) -> Tensors:
        embedding = np.zeros((LETTERS, WIDTH), np.float32)
        embedding[:, 0], embedding[:, 1] = self.level, (1, -1)
        norm, head = np.full(WIDTH, self.level / 2, np.float32), np.eye(LETTERS, WIDTH, 2, np.float32)
        found = {"backbone.embeddings.weight": embedding, "lm_head.weight": head, "backbone.norm_f.weight": norm}
        found["backbone.layers.0.norm.weight"] = norm.copy()
        return found | {f"backbone.layers.0.mixer.{name}": tensor for name, tensor in self.mixer.items()}

    def write(self, directory: Path) -> Path:
        """The files that kernel and checker read; circuit.json says no more than the promise."""
        directory.mkdir(parents=True, exist_ok=True)
        edge = {"from": "s", "to": "s", "tokens": [[0, LETTERS - 1]], "distinct": False}
        language = {"tokens": LETTERS, "start": "s", "edges": [edge]}
        promise = {"language": language, "length": LENGTH, "description": "all"}
        circuit = {"version": 1, "alphabet": ["a", "b"], "promise": promise, "streams": [], "output": 0}
        (directory / "config.json").write_text(json.dumps(self.config))
        (directory / "circuit.json").write_text(json.dumps(circuit))
        (directory / "construction.json").write_text(
            json.dumps({"format_version": 2, "promise": promise | {"dtype": self.dtype, "level": "bit-exact"}})
        )
        save_file(self.tensors(), directory / "model.safetensors", {"format": "pt"})
        return directory

    def scores(self, letters: list[int]) -> np.ndarray:
        """What the equations say, with relu for silu and softplus: (length, 2), in float64."""
        w, n = {name: tensor.astype(float) for name, tensor in self.mixer.items()}, self.columns
        lane = np.where(np.array(letters) == 0, 1.0, -1.0)
        u = np.stack([np.full(len(lane), self.level), lane, 0 * lane, 0 * lane], axis=1)
        rows = u @ w["in_proj.weight"].T
        taps = w["conv1d.weight"][:, 0, ::-1]
        held = rows[:, self.first : self.first + len(taps)]
        moved = sum(np.pad(held, ((k, 0), (0, 0)))[: len(lane)] * taps[:, k] for k in range(taps.shape[1]))
        held = np.maximum(moved + w["conv1d.bias"], 0)
        x = held[:, :WIDTH]
        if self.kind == "mamba2":
            step = np.repeat(np.maximum(rows[:, -HEADS:] + w["dt_bias"], 0), WIDTH // HEADS, axis=1)
            b, c, d = held[:, WIDTH : WIDTH + n], held[:, WIDTH + n :], np.repeat(w["D"], WIDTH // HEADS)
            a_log = np.repeat(w["A_log"], WIDTH // HEADS)[:, None]
        else:
            made = x @ w["x_proj.weight"].T
            step = np.maximum(made[:, :1] @ w["dt_proj.weight"].T + w["dt_proj.bias"], 0)
            b, c, d, a_log = made[:, 1 : 1 + n], made[:, 1 + n :], w["D"], w["A_log"]
        h, y = np.zeros((WIDTH, n)), np.zeros_like(x)
        for t in range(len(lane)):
            fade = step[t][:, None] * np.exp(a_log)
            h = np.where(fade < 104, h, 0) + (step[t] * x[t])[:, None] * b[t]
            y[t] = h @ c[t] + d * x[t]
        y *= np.maximum(rows[:, self.gates : self.gates + WIDTH], 0)
        if self.kind == "mamba2":
            y = y * w["norm.weight"] / (y[:, :1] / 2)
        return (u + y @ w["out_proj.weight"].T)[:, 2:]


def kernel_says(directory: Path) -> str | None:
    """None where the kernel accepts the arithmetic, else why not."""
    try:
        checkpoint = read(directory)
        terms = Terms(checkpoint.language)
        ledger = Ledger(terms, Search(terms, 1, checkpoint.form))
        floats = Floats(ledger, checkpoint.form)
        lanes = lanes_of(floats, checkpoint)
        head = checkpoint.tensors["lm_head.weight"]
        ledger.until("the head", [x.poly for x in lanes], lambda: check_head(floats, lanes, head, LETTERS))
    except (Unproved, Refused) as reason:
        return str(reason)
    return None


def checker_says(directory: Path) -> str | None:
    """The same of the checker."""
    try:
        prove_arithmetic(read_of_checker(directory))
    except Rejected as reason:
        return str(reason)
    return None


def runs(directory: Path, letters: list[int]) -> list[np.ndarray]:
    """The scores of the real model: of the whole sequence, and letter by letter with a cache."""
    model = AutoModelForCausalLM.from_pretrained(directory).eval()
    cache, steps = None, []
    with torch.no_grad():
        whole = model(torch.tensor([letters])).logits[0]
        for letter in letters:
            found = model(torch.tensor([[letter]]), cache_params=cache, use_cache=True)
            cache = found.cache_params
            steps.append(found.logits[0, -1])
    return [whole.double().numpy(), torch.stack(steps).double().numpy()]


def drawn(rng: random.Random) -> Block:
    """x̂, B, C and Δ, each near the least that is safe, near the largest of the dtype, or 0. C of Mamba-2 may be so
    large that with the others it makes the largest number.
    """
    kind, dtype = rng.choice(["mamba", "mamba2", "mamba2"]), rng.choice(list(FORMATS))
    block = Block(kind, dtype, rng.choice([1, 2]), rng.choice([1, 2, 4, 64]), rng.choice([1, 2, 4]))
    top, calm = (15 if dtype == "float16" else 126), rng.choice([0.5, 0.9, 1])

    def size(least: int) -> float:
        near = rng.choice([least, least + 1, least + 2])
        return 2.0 ** min(near if rng.random() < calm else rng.choice([rng.randint(least, top), top]), top)

    rest = top + 1
    (_steps_of_heads if kind == "mamba2" else _steps_of_channels)(block, rng, size)
    parts = [range(1, WIDTH)]
    if kind == "mamba2":
        rest -= int(np.log2(max(block.mixer["dt_bias"].max(), 1)))
        parts += [range(WIDTH, WIDTH + block.columns), range(WIDTH + block.columns, WIDTH + 2 * block.columns)]
    for part in parts:
        kinds, alike = rng.choice(["z", "a", "b", "c", "cabl", "zab", "zzza"]), size(6)
        if part is parts[-1] and rng.random() < 0.3:
            alike = 2.0 ** max(rest, 6)
        rest -= int(np.log2(alike))
        for row in part:
            what = rng.choice(kinds)
            lag = rng.randrange(block.config["conv_kernel"]) if what == "l" else 0
            if what in "zc":
                block.constant(row, alike if what == "c" else rng.choice([0, -128]))
            else:
                block.at(row, alike, -1 if what == "b" else 1, lag)
    if dtype != "float16":
        _opened(block, rng)
    return block


def _steps_of_heads(block: Block, rng: random.Random, size) -> None:
    w = block.mixer
    for head in range(HEADS):
        what = rng.choice("zcl")
        w["dt_bias"][head] = {"z": -128, "c": rng.choice([128, 128, 32, size(7)]), "l": 0}[what]
        if what == "l":
            w["in_proj.weight"][head - HEADS, 1] = size(9)
        w["A_log"][head] = rng.choice([0, -128, 0, 80, 3, -60])
    w["dt_bias"][0] = rng.choice([w["dt_bias"][0], -128])
    w["D"][:] = 1, rng.choice([0, 1, size(0)])


def _steps_of_channels(block: Block, rng: random.Random, size) -> None:
    w, fine = block.mixer, (-20 if block.dtype == "float16" else -100)
    for row in w["x_proj.weight"]:
        if rng.random() < 0.7:
            row[rng.randrange(WIDTH)] = rng.choice([1, -1, 2.0**-5, 2.0 ** rng.randint(fine, 10)])
    for c in range(WIDTH):
        w["dt_proj.weight"][c] = rng.choice([0, 1, -1, 8])
        w["dt_proj.bias"][c] = rng.choice([128, 32, -128, size(7), 0])
        w["A_log"][c] = rng.choice([0, -128, 80, 88, -30, -100, -20, 3])
        w["D"][c] = rng.choice([0, 1, size(0)])


def _opened(block: Block, rng: random.Random) -> None:
    """Some gates are open, and Mamba-2's ballast is far above what may come through them."""
    w, scale = block.mixer, 2.0 ** -rng.choice([10, 20, 30, 40])
    w["in_proj.weight"][block.gates, 0] = 2.0**45 / block.level
    for c in range(1, WIDTH):
        w["in_proj.weight"][block.gates + c, 0] = rng.choice([0, 32 / block.level])
        w["out_proj.weight"][rng.choice([2, 3]), c] = 1 if block.kind == "mamba2" else scale
    if block.kind == "mamba2":
        w["norm.weight"][:] = 2.0**49 * scale


def outcome(seed: int, directory: Path) -> str:
    """Who accepts this block: kernel, checker, both or nobody; `wrong` where it was accepted and is not exact."""
    rng = random.Random(seed)
    block = drawn(rng)
    block.write(directory)
    accepted = [name for name, says in (("kernel", kernel_says), ("checker", checker_says)) if says(directory) is None]
    if accepted:
        for _ in range(3):
            letters = [rng.randrange(LETTERS) for _ in range(LENGTH)]
            want = block.scores(letters)
            if not all(np.array_equal(found, want) for found in runs(directory, letters)):
                return f"wrong: {block.kind} of {block.dtype}, accepted by {', '.join(accepted)}"
    return " and ".join(accepted) or "nobody"


if __name__ == "__main__":
    counted: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as root:
        for seed in range(*map(int, sys.argv[1:3])):
            found = outcome(seed, Path(root) / "block")
            counted[found] += 1
            if found.startswith("wrong"):
                print(seed, found)
    print(dict(counted))
