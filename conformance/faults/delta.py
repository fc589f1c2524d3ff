"""The gated delta rule, right or with one bug, and what sees each bug."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from conformance.cases.companion import companion_cases
from conformance.faults.numerics import tf32
from conformance.judge import trial
from conformance.kernel.arguments import names_of
from conformance.kernel.kernel import Kernel
from conformance.stages import STAGES

TOLERANCES = (1e-2, 1e-3)
MARK, END = "<!-- table delta-rule -->\n", "<!-- end delta-rule -->"
BUGS = {
    "root of d_k left out": "recurrence",
    "read before the write": "recurrence",
    "decay of 1e-5 at every step": "decay",
    "exp clamped at -20": "decay",
    "decay behind the write": "decay",
    "β at most 1": "write",
    "β clamped at 1.99": "write",
    "β left out of the erasure": "write",
    "norm left out": "norm",
    "norm of k left out": "norm",
    "epsilon left out of the norm": "norm",
    "row 0 of k for all": "batch",
    "rows modulo 4": "batch",
    "heads tiled, not interleaved": "groups",
    "last channel of v left out": "occupancy",
    "channels of v beyond 32 left out": "occupancy",
    "places of a key beyond 32 left out": "occupancy",
    "places of a key beyond 64 left out": "occupancy",
    "state lost every 64": "chunk",
    "a thousandth lost every 64": "chunk",
    "first step of a chunk reads nothing of before": "chunk",
    "state before the last step handed back": "last state",
    "state lost in a full last chunk": "last state",
    "initial state ignored": "initial state",
    "documents ignored": "packed",
    "state kept in half": "precision",
    "state kept in bfloat16": "precision",
    "decay of more than 0.999 is 1": "accuracy",
    "root of d_k as a power of two": "accuracy",
    "state in the dtype of v": "dtype",
    "initial state lost with a norm": "crossing",
    "more than three heads of v for each of k": "crossing",
    "rows from the fourth on lost with a norm": "crossing",
    "strides ignored": "crossing",
    "exp in half is 0 or 1": "crossing",
    "products in TF32 from 16 keys": "crossing",
    "norm of q and k in bfloat16 from 64 keys": "crossing",
    "exp is 0 or 1 from 64 keys": "crossing",
}


def delta_rule(q, k, v, g, beta, seq_idx=None, initial_state=None, use_qk_l2norm_in_kernel=False, bug=""):
    """y like v and the last state (b, h, d_k, d_v): one step after the other, with a bug by name."""
    dtype = v.dtype
    if bug == "exp in half is 0 or 1":
        bug = "exp is 0 or 1" if dtype == torch.half else ""
    if bug == "strides ignored":
        v = v.as_strided(v.shape, torch.empty(v.shape).stride())
    q, k, v, g, beta = (m.float() for m in (q, k, v, g, beta))
    if bug == "products in TF32 from 16 keys" and k.shape[-1] >= 16:
        q, k, v = (tf32(m) for m in (q, k, v))
    if bug == "exp is 0 or 1 from 64 keys" and k.shape[-1] >= 64:
        bug = "exp is 0 or 1"
    if bug == "rows modulo 4":
        q, k, v, g, beta = (m[torch.arange(len(m)) % 4] for m in (q, k, v, g, beta))
    if use_qk_l2norm_in_kernel and bug != "norm left out":
        epsilon = 0.0 if bug == "epsilon left out of the norm" else 1e-6
        q = _normed(q, epsilon)
        k = k if bug == "norm of k left out" else _normed(k, epsilon)
        if bug == "norm of q and k in bfloat16 from 64 keys" and k.shape[-1] >= 64:
            q, k = q.bfloat16().float(), k.bfloat16().float()
    spread_over = k.shape[2]
    q, k = (_shared(m, v.shape[2], bug) for m in (q, k))
    k = k[:1].expand_as(k) if bug == "row 0 of k for all" else k
    q = q * _scale(q.shape[-1], bug)
    for most in (32, 64):
        if bug == f"places of a key beyond {most} left out":
            k = torch.where(torch.arange(k.shape[-1]) < most, k, 0.0)
    beta = beta.clamp(max={"β at most 1": 1.0, "β clamped at 1.99": 1.99}.get(bug, 2.0))
    state = k.new_zeros(k.shape[0], v.shape[2], k.shape[-1], v.shape[-1])
    lost = bug == "initial state ignored" or (bug == "initial state lost with a norm" and use_qk_l2norm_in_kernel)
    if initial_state is not None and not lost:
        state = initial_state.float()
    y, before = [], state
    for t in range(v.shape[1]):
        if t and seq_idx is not None and bug != "documents ignored":
            state = torch.where((seq_idx[:, t] != seq_idx[:, t - 1])[:, None, None, None], 0.0, state)
        before = state
        state = _step(_at_border(state, t, bug), k[:, t], v[:, t], g[:, t], beta[:, t], bug)
        state = state.to(dtype).float() if bug == "state in the dtype of v" else state
        late = bug == "first step of a chunk reads nothing of before" and t % 64 == 0
        seen = before if bug == "read before the write" else state - before if t and late else state
        y.append(torch.einsum("bhkv,bhk->bhv", seen, q[:, t]))
    found = torch.stack(y, 1)
    if bug == "last channel of v left out":
        found[..., found.shape[-1] // 16 * 16 :] *= found.shape[-1] < 16
    if bug == "more than three heads of v for each of k" and v.shape[2] > 3 * spread_over:
        found = 0 * found
    if bug == "rows from the fourth on lost with a norm" and use_qk_l2norm_in_kernel:
        found[3:] = 0
    if bug == "channels of v beyond 32 left out":
        found[..., 32:] = 0
    if bug == "state lost in a full last chunk" and v.shape[1] % 64 == 0:
        state = 0 * state
    return found.to(dtype), before if bug == "state before the last step handed back" else state


def _normed(m: Tensor, epsilon: float) -> Tensor:
    return m * torch.rsqrt((m * m).sum(-1, keepdim=True) + epsilon)


def _scale(keys: int, bug: str) -> float:
    """Of q: 1/√d_k."""
    if bug == "root of d_k as a power of two":
        return 2.0 ** -((keys.bit_length() - 1) // 2)
    return 1.0 if bug == "root of d_k left out" else keys**-0.5


def _shared(m: Tensor, heads: int, bug: str) -> Tensor:
    """q or k for each head of v."""
    spread = heads // m.shape[2]
    return m.repeat(1, 1, spread, 1) if bug == "heads tiled, not interleaved" else m.repeat_interleave(spread, 2)


def _at_border(state: Tensor, t: int, bug: str) -> Tensor:
    """The state as a chunk of 64 hands it to the next."""
    if not t or t % 64:
        return state
    lost = {"state lost every 64": 0.0, "a thousandth lost every 64": 0.999}
    return state * lost.get(bug, 1.0)


def _step(state: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, bug: str) -> Tensor:
    g = g * (g < -1e-3) if bug == "decay of more than 0.999 is 1" else g
    decay = g.clamp(min=-20).exp() if bug == "exp clamped at -20" else g.exp()
    decay = decay.round() if bug == "exp is 0 or 1" else decay
    if bug == "decay of 1e-5 at every step":
        decay = decay * (1 - 1e-5)
    old = state if bug == "decay behind the write" else state * decay[..., None, None]
    held = torch.einsum("bhkv,bhk->bhv", old, k)
    change = beta[..., None] * v - held if bug == "β left out of the erasure" else beta[..., None] * (v - held)
    new = old + k[..., None] * change[..., None, :]
    new = new * decay[..., None, None] if bug == "decay behind the write" else new
    narrow = {"state kept in half": torch.half, "state kept in bfloat16": torch.bfloat16}.get(bug)
    return new if narrow is None else new.to(narrow).float()


def faulty(bug: str = "") -> Kernel:
    """The function with a bug, or right."""
    names = names_of("delta_rule") | {"seq_idx"}
    kept = frozenset(names - {"output_final_state", "cu_seqlens", "chunk_size"})
    return Kernel(f"delta_rule: {bug or 'right'}", "delta_rule", partial(delta_rule, bug=bug), kept)


def caught(bug: str) -> str:
    """The stage of the first exact case that the bug gets wrong; "" where it gets none wrong."""
    order = list(STAGES)
    found = (each.finding for each in trial(faulty(bug)))
    return min((each.stage for each in found if each.status == "failed"), key=order.index, default="")


def seen_by_random_operands(bug: str) -> tuple[bool, ...]:
    """Whether `allclose` sees the bug on random operands in the modes of the companion cases, at each tolerance."""
    seen = [False] * len(TOLERANCES)
    for case in companion_cases("delta_rule"):
        right, wrong = (faulty(name).run(case) for name in ("", bug))
        for i, tolerance in enumerate(TOLERANCES):
            seen[i] |= any(
                not torch.allclose(wrong[n], right[n], rtol=tolerance, atol=tolerance) for n in case.expected
            )
    return tuple(seen)


def lines() -> Iterator[str]:
    """The table of the page."""
    mark = {True: "yes", False: "–"}
    yield "| bug | exact: caught at | random operands, allclose 1e-2 / 1e-3 |"
    yield "| --- | --- | --- |"
    for bug in BUGS:
        yield f"| {bug} | {caught(bug) or 'not found'} | {' / '.join(mark[s] for s in seen_by_random_operands(bug))} |"


def write(page: Path) -> None:
    """Put the table between its marks on a page."""
    before, mark, rest = page.read_text("utf-8").partition(MARK)
    page.write_text(before + mark + "\n".join(lines()) + "\n" + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
