"""An evaluator of Mamba and Mamba-2 language models in exact arithmetic: the oracle of the checker's fuzzer.

It shares no code with the checker. Activations, decays and norms must be safe here too: `Unsafe` where the real
module could round. Numbers are Fractions, or float64 (53 bits, enough for what 24 bits hold) where speed matters.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np


class Unsafe(ArithmeticError):
    """An activation, a decay or a norm outside the set where floats are exact."""


def rectified(x: np.ndarray, zero: bool) -> np.ndarray:
    safe = (x > 20) | (x <= -104)
    if zero:
        safe |= x == 0
    if not safe.all():
        raise Unsafe(f"an activation of {float(x[~safe][0])}")
    return np.where(x > 20, x, 0 * x)


def decayed(exponent: np.ndarray) -> np.ndarray:
    """exp(−exponent) where it is 0 or 1."""
    kept, erased = exponent <= 2.0**-26, exponent >= 104
    if not (kept | erased).all():
        raise Unsafe(f"a decay by {float(exponent[~(kept | erased)][0])}")
    return np.where(kept, 1, 0)


def normed(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    mean = (x * x).sum(-1) / x.shape[-1]
    if not (mean > 0).all():
        raise Unsafe("a norm of 0")
    level = np.vectorize(lambda m: 2.0 ** round(np.log2(float(m)) / 2), otypes=[float])(mean)
    if (abs(mean.astype(float) / level**2 - 1) > 1 / 64).any():
        raise Unsafe("a norm without ballast")
    return x * weight / level.astype(x.dtype)[..., None]


class Model:
    """logits(ids): (batch, time) to (batch, time, vocabulary), or Unsafe."""

    def __init__(self, config: dict, tensors: dict[str, np.ndarray], fractions: bool = False):
        self.config = config
        if not all(np.isfinite(v).all() for v in tensors.values()):
            raise Unsafe("a weight is not finite")
        convert = np.vectorize(Fraction, otypes=[object]) if fractions else (lambda a: a)
        self.t = {name: convert(array.astype(np.float64)) for name, array in tensors.items()}
        self.a = {
            n: np.where(v <= -104, 0.0, np.exp(v.astype(np.float64))) for n, v in tensors.items() if n.endswith("A_log")
        }

    def logits(self, ids: np.ndarray) -> np.ndarray:
        x = self.t["backbone.embeddings.weight"][ids]
        block = self.mamba if self.config["model_type"] == "mamba" else self.mamba2
        for b in range(self.config["num_hidden_layers"]):
            prefix = f"backbone.layers.{b}."
            x = x + block(normed(x, self.t[prefix + "norm.weight"]), prefix + "mixer.")
        return normed(x, self.t["backbone.norm_f.weight"]) @ self.t["lm_head.weight"].T

    def _convolved(self, x: np.ndarray, prefix: str) -> np.ndarray:
        taps = self.t[prefix + "conv1d.weight"][:, 0, :]
        total = np.zeros_like(x) + self.t[prefix + "conv1d.bias"]
        for lag in range(min(taps.shape[1], x.shape[1])):
            total[:, lag:] = total[:, lag:] + x[:, : x.shape[1] - lag] * taps[:, taps.shape[1] - 1 - lag]
        return rectified(total, True)

    def _scan(self, step, a, write, read, x) -> np.ndarray:
        """step, x: (b, t, channels); a: (channels, n); write, read: (b, t, n)."""
        state = np.zeros((x.shape[0], x.shape[2], write.shape[2]), dtype=x.dtype)
        outs = []
        for t in range(x.shape[1]):
            factor = decayed(step[:, t, :, None].astype(float) * a)
            state = factor * state + (step[:, t] * x[:, t])[:, :, None] * write[:, t, None, :]
            outs.append((state * read[:, t, None, :]).sum(-1))
        return np.stack(outs, axis=1)

    def mamba(self, u: np.ndarray, prefix: str) -> np.ndarray:
        inner, n, rank = (self.config[k] for k in ("intermediate_size", "state_size", "time_step_rank"))
        xz = u @ self.t[prefix + "in_proj.weight"].T
        x = self._convolved(xz[..., :inner], prefix)
        small = x @ self.t[prefix + "x_proj.weight"].T
        step = rectified(
            small[..., :rank] @ self.t[prefix + "dt_proj.weight"].T + self.t[prefix + "dt_proj.bias"], False
        )
        y = self._scan(step, self.a[prefix + "A_log"], small[..., rank : rank + n], small[..., rank + n :], x)
        y = y + self.t[prefix + "D"] * x
        return (y * rectified(xz[..., inner:], True)) @ self.t[prefix + "out_proj.weight"].T

    def mamba2(self, u: np.ndarray, prefix: str) -> np.ndarray:
        inner, n, p = (self.config[k] for k in ("intermediate_size", "state_size", "head_dim"))
        rows = u @ self.t[prefix + "in_proj.weight"].T
        xbc = self._convolved(rows[..., inner : 2 * inner + 2 * n], prefix)
        x, write, read = xbc[..., :inner], xbc[..., inner : inner + n], xbc[..., inner + n :]
        step = np.repeat(rectified(rows[..., 2 * inner + 2 * n :] + self.t[prefix + "dt_bias"], False), p, axis=-1)
        a = np.repeat(self.a[prefix + "A_log"], p)[:, None] * np.ones((1, n))
        y = self._scan(step, a, write, read, x) + np.repeat(self.t[prefix + "D"], p) * x
        y = normed(y * rectified(rows[..., :inner], True), self.t[prefix + "norm.weight"])
        return y @ self.t[prefix + "out_proj.weight"].T
