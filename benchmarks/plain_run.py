"""One long sequence through a checkpoint of an automaton by transformers alone; each answer beside plain Python.

    python benchmarks/plain_run.py CHECKPOINT --oracle s5 --length 1000000 [--dtype bfloat16] [--keep FILE]

Imports nothing of this project. The model reads the letters in pieces, its cache carried on. The layer of attention,
whose output is multiplied by 0, begins each piece with an empty cache, for its cost grows with the square of the
length; `--attention` carries its cache on as well. `--keep FILE` saves where the run stands, and goes on from there.
The last line is a JSON object. Exit code 1: an answer was wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.cache_utils import DynamicLayer

PIECE = 1024
SAVE_EVERY = 20  # pieces


def parity(state: str, letter: str) -> str:
    return state if letter != "a" else {"yes": "no", "no": "yes"}[state]


def modulo_5(state: str, letter: str) -> str:
    """Letters and states are "n0" … "n4"."""
    return f"n{(int(state[1]) + int(letter[1])) % 5}"


def permutation(state: str, letter: str) -> str:
    """Five marbles: the state names each one's place, and the letter where a marble at each place goes."""
    return "p" + "".join(letter[1 + int(place)] for place in state[1:])


ORACLES: dict[str, tuple[str, Callable[[str, str], str]]] = {
    "parity": ("yes", parity),
    "mod-5": ("n0", modulo_5),
    "a5": ("p01234", permutation),
    "s5": ("p01234", permutation),
}
"""The state before any letter, and the state behind one; a state is its own answer."""


def run(model: Any, names: Any, asked: argparse.Namespace) -> dict[str, Any]:
    """How many answers were wrong, the first of them, and how many positions were run."""
    start, follow = ORACLES[asked.oracle]
    letters = asked.letters.split(",")
    ids, answers = names.convert_tokens_to_ids(letters), names.get_vocab()
    now = {"done": 0, "state": start, "wrong": 0, "first": None, "cpu_s": 0.0, "cache": None, "of": _of(asked)}
    if asked.keep is not None and asked.keep.exists():
        now = torch.load(asked.keep, weights_only=False)
        if now["of"] != _of(asked):
            raise SystemExit(f"--keep {asked.keep}: it holds another run; name another file.")
    while now["done"] < asked.length:
        began = time.process_time()
        draw = random.Random(f"{asked.seed} {now['done']}")
        which = [draw.randrange(len(letters)) for _ in range(min(PIECE, asked.length - now["done"]))]
        tokens = torch.tensor([[ids[i] for i in which]])
        out = model(tokens, past_key_values=now["cache"], use_cache=True)
        now["cache"] = out.past_key_values
        if not asked.attention:
            now["cache"].layers[-1] = DynamicLayer()
        for i, said in zip(which, out.logits[0].argmax(dim=-1).tolist(), strict=True):
            now["state"] = follow(now["state"], letters[i])
            if said != answers[now["state"]]:
                now["wrong"] += 1
                now["first"] = now["done"] if now["first"] is None else now["first"]
            now["done"] += 1
        now["cpu_s"] += time.process_time() - began
        if asked.keep is not None and (now["done"] // PIECE % SAVE_EVERY == 0 or now["done"] == asked.length):
            torch.save(now, asked.keep.with_suffix(".new"))
            asked.keep.with_suffix(".new").replace(asked.keep)
            print(f"{now['done']:,} of {asked.length:,}, {now['wrong']} wrong", file=sys.stderr, flush=True)
    return {key: now[key] for key in ("done", "wrong", "first", "cpu_s")}


def _of(asked: argparse.Namespace) -> tuple:
    """What a run that goes on must have been begun with."""
    return (str(asked.checkpoint), asked.oracle, asked.letters, asked.dtype, asked.seed, asked.attention, PIECE)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--oracle", choices=ORACLES, required=True)
    parser.add_argument("--letters", required=True, help="the letters that are drawn, with commas between")
    parser.add_argument("--length", type=int, required=True)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--attention", action="store_true", help="carry the cache of the attention on")
    parser.add_argument("--keep", type=Path, help="where the run stands; it goes on from there")
    asked = parser.parse_args(arguments)
    model = AutoModelForCausalLM.from_pretrained(asked.checkpoint, dtype=getattr(torch, asked.dtype)).eval()
    names = AutoTokenizer.from_pretrained(asked.checkpoint)
    with torch.inference_mode():
        found = run(model, names, asked)
    print(json.dumps({"class": type(model).__name__, "dtype": asked.dtype, **found}))
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
