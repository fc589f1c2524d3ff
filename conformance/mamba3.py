"""The rotation of Mamba-3 as mamba_ssm 2.3.2.post1 computes it, a half turn at each token: emulated, and on CUDA.

A half turn at each token is parity: the first of two rotated numbers has the sign (−1)^t. The class adds
tanh(a)·Δ·π to an angle of float32. Its kernel for whole sequences takes the sums modulo 2π, chunk by chunk; that for
one token, of decoding, never does. So the angle grows, and the steps of float32 with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

PI, TWO_PI = np.float32(3.141592653589793), np.float32(6.283185307179586)
CHUNK = 64

Step = Callable[[np.float32], tuple[np.float32, float]]
"""One token: the angle before, to the angle behind and the first rotated number of (1, 0)."""


def decoded(angle: np.float32) -> tuple[np.float32, float]:
    """The step of decoding, Δ = 1 and tanh(a) = 1."""
    angle = np.float32(angle + PI)
    return angle, float(np.cos(np.float64(angle)))


def wrong_tokens(step: Step, tokens: int) -> Iterator[int]:
    """The tokens, from 1, at which the sign is not the parity of the tokens so far."""
    angle = np.float32(0)
    for t in range(1, tokens + 1):
        angle, rotated = step(angle)
        if (rotated < 0) != bool(t % 2):
            yield t


def first_wrong(step: Step, tokens: int) -> int | None:
    """The first of them, None where all are right."""
    return next(wrong_tokens(step, tokens), None)


def prefill_error(tokens: int) -> float:
    """How far the angle is from where it should be, in radians, behind a word of which each token turns with a chance
    of one half, computed in chunks of 64: each chunk's sum by halves, added to the angle before, and that reduced.
    """
    turns = np.random.RandomState(0).randint(2, size=tokens).astype(np.float32)
    sums = (turns * PI).reshape(-1, CHUNK)
    while sums.shape[1] > 1:
        sums = sums[:, ::2] + sums[:, 1::2]
    angle = np.float32(0)
    for total in sums[:, 0]:
        angle = np.float32(angle + total)
        angle = np.float32(angle - TWO_PI * np.floor(angle / TWO_PI))
    return abs((float(angle) - np.pi * float(turns.sum() % 2) + np.pi) % (2 * np.pi) - np.pi)


def on_cuda() -> Step:
    """The step of the installed mamba_ssm; RuntimeError, in one sentence, where it cannot run."""
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError("the step of Mamba-3 is a Triton kernel, and this machine has no CUDA device")
    from mamba_ssm.ops.triton.mamba3.mamba3_mimo_rotary_step import apply_rotary_qk_inference_fwd

    q = torch.zeros(1, 1, 1, 16, device="cuda")
    q[..., 0] = 1
    turn, dt = torch.full((1, 1, 1), 64.0, device="cuda"), torch.ones(1, 1, device="cuda")

    def step(angle: np.float32) -> tuple[np.float32, float]:
        held = torch.full((1, 1, 1), float(angle), device="cuda")
        rotated, _, behind = apply_rotary_qk_inference_fwd(q=q, k=q, angle_state=held, angle_proj=turn, dt=dt)
        return np.float32(behind.item()), float(rotated[0, 0, 0, 0])

    return step
