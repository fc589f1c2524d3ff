"""mlx-lm on MLX's CPU code: logits of a directory as a whole, in pieces and token by token, and what it writes.

`python mlx_client.py REQUEST.json`, with requests as for every client (tests/export/cases.py).
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import mlx.core as mx
import numpy as np
from mlx_lm import load
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import make_prompt_cache


def array(values: mx.array) -> np.ndarray:
    return np.array(values.astype(mx.float32))


def in_pieces(model, ids: np.ndarray, pieces: list[int]) -> np.ndarray:
    cache, found, start = make_prompt_cache(model), [], 0
    for piece in pieces:
        found.append(array(model(mx.array(ids[:, start : start + piece]), cache=cache)))
        start += piece
    return np.concatenate(found, axis=1)


def written(model, names, prompt: str, most: int) -> str:
    ids = []
    for token, _ in generate_step(mx.array(names.encode(prompt)), model, max_tokens=most):
        ids.append(int(token))
        if ids[-1] in names.eos_token_ids:
            break
    return names.decode(ids)


def uneven(length: int) -> list[int]:
    pieces, left = [], length
    while left:
        pieces.append(min(left, (1, 7, 2, 13)[len(pieces) % 4]))
        left -= pieces[-1]
    return pieces


def main(requests: str) -> None:
    mx.set_default_device(mx.cpu)
    for request in json.loads(Path(requests).read_text()):
        ids = np.load(request["ids"])
        model, names = load(request["path"])
        tokens = names.encode(request["text"])
        np.savez(
            request["out"],
            whole=array(model(mx.array(ids))),
            pieces=in_pieces(model, ids, uneven(ids.shape[1])),
            steps=in_pieces(model, ids, [1] * ids.shape[1]),
            written=[written(model, names, prompt, request["most"]) for prompt in request["prompts"]],
            tokens=tokens,
            text=names.decode(tokens),
        )
    print(f"mlx-lm {version('mlx-lm')} (mlx {version('mlx')})")


if __name__ == "__main__":
    main(sys.argv[1])
