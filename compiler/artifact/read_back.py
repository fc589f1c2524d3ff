"""What stands around the blocks of a packaged model, read back: embedding, head, norms and their ballast.

The blocks themselves are read back where they are printed (`compiler/exactness/read_back.py`).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from torch import Tensor

from compiler.compiled import Compiled
from compiler.exactness.compare import MISTAKE, Miscompiled
from compiler.exactness.read_back import canonical, csr, moved
from compiler.targets.family import EMBEDDING, FINAL_NORM, HEAD, norm_name


def check_around_blocks(compiled: Compiled, tensors: dict[str, Tensor], special: float, ballast: int) -> None:
    """Embedding, head and norms are read back, as `Target.printed` does with blocks; Miscompiled where they differ."""
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    count, letters, scored = compiled.lanes.count, compiled.source.token_alphabet.size, compiled.head.shape[0]
    table, head = arrays[EMBEDDING], arrays[HEAD]
    check_table("the embedding", table[:letters, :-ballast], compiled.lanes.embedding, np.arange(count))
    check_table("the head", head[:scored], compiled.head, np.arange(count))
    beyond = np.zeros_like(head[scored:])
    beyond[letters - scored :, -1] = special
    held = not table[letters:, :-ballast].any() and (table[:, -ballast:] == table[0, -ballast:]).all()
    if not held or not (head[scored:] == beyond).all():
        raise Miscompiled(f"{MISTAKE} the special tokens or the ballast of the norms are not as they were meant.")
    for name in (*(norm_name(i) for i in range(len(compiled.blocks))), FINAL_NORM):
        check_norm(name, arrays[name], table[0, -ballast:], count)


def check_table(name: str, dense: np.ndarray, matrix: sparse.csr_array, at: np.ndarray) -> None:
    """Raise Miscompiled unless a dense table holds the matrix, lane j in column at[j], and zeros."""
    found, meant = canonical(csr(dense)), canonical(moved(matrix, at, dense.shape[1]))
    parts = ("indptr", "indices", "data")
    if not all(np.array_equal(getattr(found, part), getattr(meant, part)) for part in parts):
        raise Miscompiled(f"{MISTAKE} the weights that were printed as {name} are not those of its lanes.")


def check_norm(name: str, weight: np.ndarray, ballast: np.ndarray, lanes: int) -> None:
    """Raise Miscompiled unless a norm with these weights gives every lane back, beside this ballast in the last places.

    The mean square is Σ ballast²/width; the weights are its root on the lanes and 0 up to the last place.
    """
    root = float((ballast.astype(np.float64) ** 2).sum() / len(weight)) ** 0.5
    if not ((weight[:lanes] == root).all() and not weight[lanes:-1].any() and weight[-1] * ballast[-1] in (0, root)):
        raise Miscompiled(f"{MISTAKE} the weights that were printed as {name} do not give the lanes back.")
