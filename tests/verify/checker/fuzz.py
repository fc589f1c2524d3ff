"""Mutate checkpoints and hold the checker to its word: what it accepts must run bit for bit as exact arithmetic says.

python -m tests.verify.checker.fuzz COUNT [SEED] CHECKPOINT...
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file

from tests.verify.checker.exact import Model, Unsafe
from tests.verify.checker.forks import judged
from verify.checker.arithmetic.model import prove_arithmetic
from verify.checker.files import Checkpoint
from verify.checker.formats import Rejected

LONGEST = 24  # positions of what the module is run on here
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def walks(language: dict, count: int, length: int, rng: random.Random) -> np.ndarray:
    """(walks, time) random sequences of an input language given as data, all of one random length up to `length`."""
    top, found = rng.randint(1, min(length, language["length"])), []
    for _ in range(count):
        state, used, word = language["start"], set(), []
        while len(word) < top:
            options = []
            for i, edge in enumerate(language["edges"]):
                if edge["from"] == state:
                    ids = [t for first, last in edge["tokens"] for t in range(first, last + 1)]
                    ids = [t for t in ids if not (edge["distinct"] and (i, t) in used)]
                    options += [(i, edge, ids)] if ids else []
            if not options:
                break
            i, edge, ids = rng.choice(options)
            word.append(rng.choice(ids))
            used.add((i, word[-1]))
            state = edge["to"]
        found.append(word)
    shortest = min(map(len, found))
    return np.array([word[:shortest] for word in found])


def mutated(array: np.ndarray, rng: random.Random) -> tuple[np.ndarray, str]:
    """A copy with one entry changed, and how."""
    array = array.copy()
    flat = array.reshape(-1)
    live = np.flatnonzero(flat)
    at = int(rng.choice(live.tolist())) if len(live) and rng.random() < 0.7 else rng.randrange(len(flat))
    old = flat[at]
    other = float(rng.choice(flat[live].tolist())) if len(live) else 1.0
    kinds = {
        "sign": -old, "up": np.nextafter(old, np.float32(np.inf)), "down": np.nextafter(old, np.float32(-np.inf)),
        "double": 2 * old, "half": old / 2, "zero": 0.0, "huge": 2.0**100, "nan": np.nan, "inf": np.inf,
        "other": other, "one": 1.0, "minus": -32.0, "large": 4096.0, "log": 100.0, "add": old + 1, "sub": old - 32,
    }  # fmt: skip
    kind = rng.choice(list(kinds))
    flat[at] = kinds[kind]
    return array, f"{kind} at {at}"


class Real:
    """The module of transformers for one config, whose weights are replaced in place.

    longest: no sequence is longer. Mamba-2 pads what it runs to a whole chunk, in time that grows with the square of
    it: so a chunk is no longer here either, and every sequence stays in one.
    """

    def __init__(self, config: dict, longest: int | None = None):
        from transformers import Mamba2Config, Mamba2ForCausalLM, MambaConfig, MambaForCausalLM

        torch.set_num_threads(1)
        classes = {"mamba": (MambaConfig, MambaForCausalLM), "mamba2": (Mamba2Config, Mamba2ForCausalLM)}
        make, model = classes[config["model_type"]]
        fields = {k: v for k, v in config.items() if k not in ("architectures", "dtype", "model_type")}
        self.longest = longest
        if longest is not None and fields.get("chunk_size", 0) > longest:
            fields["chunk_size"] = longest
        self.model = model(make(**fields)).to(DTYPES[config["dtype"]]).eval()
        self.parameters = dict(self.model.named_parameters())
        self.held: dict[str, np.ndarray] = {}  # what each parameter was given last

    def logits(self, tensors: dict[str, np.ndarray], ids: np.ndarray) -> np.ndarray:
        """(batch, time) ids to scores in float64, with these tensors, which nobody may change in place."""
        with torch.no_grad():
            for name, array in tensors.items():
                if self.held.get(name) is not array:
                    self.parameters[name].copy_(torch.from_numpy(array))
                    self.held[name] = array
            assert self.longest is None or ids.shape[1] <= self.longest
            return self.model(torch.from_numpy(ids)).logits.double().numpy()


def wrong(config: dict, tensors: dict, real: Real, words: np.ndarray, fractions: bool = False) -> str | None:
    """Where the real module leaves exact arithmetic; None if nowhere."""
    try:
        exact = Model(config, tensors, fractions).logits(words)
    except Unsafe as reason:
        return f"accepted, but {reason}"
    got = real.logits(tensors, words)
    different = np.argwhere(~(got == exact.astype(np.float64)))
    if len(different):
        b, t, i = different[0]
        return f"logit {i} at {t} of {words[b].tolist()} is {got[b, t, i]!r}, exactly {float(exact[b, t, i])!r}"
    return None


def proved(checkpoint: Checkpoint) -> bool:
    """Whether every float operation of it is proved to be exact."""
    try:
        prove_arithmetic(checkpoint)
    except Rejected:
        return False
    return True


def fuzz(directory: Path, count: int, rng: random.Random, sequences: int = 24) -> tuple[Counter, list[str]]:
    """(accepted, rejected and unsound mutants, what was unsound)."""
    config = json.loads((directory / "config.json").read_text())
    promise = json.loads((directory / "construction.json").read_text())["promise"]
    language = promise["language"] | {"length": promise["length"]}
    tensors = load_file(directory / "model.safetensors")
    real = Real(config, LONGEST)
    tally, found = Counter(), []
    if problem := wrong(config, tensors, real, walks(language, sequences, LONGEST, rng)):
        found.append(f"{directory.name}: unchanged: {problem}")
    changes, told = [], []
    for _ in range(count):
        changed, how = {}, []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            name = rng.choice(list(tensors))
            changed[name], text = mutated(changed.get(name, tensors[name]), rng)
            how.append(f"{name}: {text}")
        changes.append(changed)
        told.append(how)
    verdicts = judged(config, tensors, promise, changes, proved)
    for changed, how, verdict in zip(changes, told, verdicts, strict=True):
        if verdict is not True:
            tally["rejected"] += 1
            continue
        tally["accepted"] += 1
        exactly = rng.random() < 0.03
        words = walks(language, 2 if exactly else sequences, LONGEST, rng)
        if problem := wrong(config, tensors | changed, real, words, exactly):
            tally["unsound"] += 1
            found.append(f"{directory.name}: {how}: {problem}")
    return tally, found


def main() -> None:
    count, seed, *names = sys.argv[1:]
    rng, total = random.Random(int(seed)), Counter()
    for name in names:
        tally, found = fuzz(Path(name), int(count), rng)
        total += tally
        print(Path(name).name, dict(tally), flush=True)
        for line in found[:5]:
            print("  UNSOUND", line[:400], flush=True)
    print(dict(total))


if __name__ == "__main__":
    main()
