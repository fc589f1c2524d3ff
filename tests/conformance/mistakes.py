"""Mistakes of a kernel in float64, and the options without which each cannot show.

A mistake is a name. Operands and results are changed by it, or what a step does. Letters as in `conformance.exact`; a
scan has channels d, which are those of all heads of ssd.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from conformance.loader import Case

Arrays = dict[str, Any]
Needs = Mapping[str, Any]
"""A factor, and the values of it with which a mistake can show; of sizes, what they must be."""

STATE = ["state", "pieces", "state and documents"]
PACKED = ["documents", "state and documents"]
BEYOND = lambda least: lambda length: length > least

_OF_STEPS: dict[str, Needs] = {
    "B of the position before": {"length": BEYOND(1)},
    "C of the position before": {"length": BEYOND(1)},
    "u of the position before": {"length": BEYOND(1)},
    "B of the last position is of the one before": {"length": BEYOND(1)},
    "first y lost": {},
    "last y lost": {},
    "y of the last channel lost": {},
    "y of the last row lost": {},
    **{f"{name} of row 0": {"batch": [2]} for name in ("u", "dt", "B", "C")},
    "z of row 0": {"batch": [2], "z": [True]},
    "h of row 0": {"batch": [2], "start": STATE},
    "documents of row 0": {"batch": [2], "start": PACKED, "length": BEYOND(2)},
    **{f"{name} of another channel": {} for name in ("u", "dt")},
    "A of another channel": {"length": BEYOND(1)},
    "D of another channel": {"D": [True, "of heads", "of channels"]},
    "z of another channel": {"z": [True]},
    "bias of another channel": {"bias": [True]},
    "h of another channel": {"start": STATE},
    "B of another column": {},
    "C of another column": {},
    "h of another column": {"start": STATE},
    "B of group 0": {"groups": [2]},
    "C of group 0": {"groups": [2]},
    "groups tiled": {"groups": [2]},
    "D ignored": {"D": [True, "of heads", "of channels"]},
    "z ignored": {"z": [True]},
    "bias ignored": {"bias": [True]},
    "softplus ignored": {"softplus": [True]},
    "h ignored": {"start": STATE},
    "gate before D": {"z": [True], "D": [True, "of heads", "of channels"]},
    "documents ignored": {"start": PACKED, "length": BEYOND(2)},
    "documents a position late": {"start": PACKED, "length": BEYOND(3)},
    **{f"state lost at {place}": {"length": BEYOND(place)} for place in (16, 64, 128, 256, 1024)},
    "state lost at the last position": {"length": BEYOND(1)},
    "nothing decays": {"length": BEYOND(1)},
    "nothing decays at the last position": {"length": BEYOND(1)},
    "exp is 0 or 1": {"length": BEYOND(1)},
    "softplus is a relu": {"softplus": [True]},
    "silu is a relu": {"z": [True]},
    "last state of the last channel lost": {"last state": [True]},
    "last state of the last column lost": {"last state": [True]},
    "last state of row 0": {"last state": [True], "batch": [2]},
    "last state of the position before": {"last state": [True]},
}
MISTAKES: dict[str, dict[str, Needs]] = {
    "selective_scan": _OF_STEPS | {"A of another column": {"length": BEYOND(1)}},
    "ssd": _OF_STEPS
    | {
        "limits ignored": {"limit": ["above", "both", "below"]},
        "least step ignored": {"limit": ["both", "below"]},
        "state lost at each chunk": {"length": BEYOND(256)},
    },
    "conv": {
        "taps in reverse": {},
        "oldest tap ignored": {"length": BEYOND(3)},
        "x of row 0": {"batch": [2]},
        "x of another channel": {},
        "weight of another channel": {},
        "bias of another channel": {"bias": [True]},
        "bias ignored": {"bias": [True]},
        "silu ignored": {"activation": ["silu", "swish"]},
        "silu is a relu": {"activation": ["silu", "swish"]},
        "window ignored": {"start": ["state", "pieces"]},
        "documents ignored": {"start": ["documents"], "length": BEYOND(2)},
        "documents of row 0": {"start": ["documents"], "batch": [2], "length": BEYOND(2)},
        "first y lost": {},
        "last y lost": {},
        **{f"window lost at {place}": {"length": BEYOND(place)} for place in (64, 128, 256, 1024)},
        "last window one position early": {"last state": [True]},
        "last window of row 0": {"last state": [True], "batch": [2]},
    },
    "norm": {
        "weight ignored": {},
        "epsilon ignored": {},
        "z ignored": {"z": [True]},
        "silu is a relu": {"z": [True]},
        "gate on the other side": {"z": [True]},
        "mean over all groups": {"groups": [2]},
        "x of row 0": {"batch": [2]},
        "z of row 0": {"batch": [2], "z": [True]},
        "mean of the position before": {"length": BEYOND(1)},
        "last channel lost": {},
    },
    "delta_rule": {
        "decay ignored": {"length": BEYOND(1)},
        "exp is 0 or 1": {"length": BEYOND(1)},
        "decay behind the write": {},
        "β ignored": {},
        "β at most 1": {},
        "erasure ignored": {"length": BEYOND(1)},
        **{f"{name} of row 0": {"batch": [2]} for name in ("q", "k", "v", "beta")},
        "g of row 0": {"batch": [2], "length": BEYOND(1)},
        "h of row 0": {"batch": [2], "start": ["state", "pieces"]},
        **{f"{name} of the position before": {"length": BEYOND(1)} for name in ("q", "k", "v", "beta")},
        "heads tiled": {"spread": [2, 3], "sizes": [(2, 16, 5)]},
        "h ignored": {"start": ["state", "pieces"]},
        "documents ignored": {"start": ["documents"], "length": BEYOND(2)},
        **{f"state lost at {place}": {"length": BEYOND(place)} for place in (16, 64, 128)},
        "norm ignored": {"normed": [True]},
        "norm of k ignored": {"normed": [True]},
        "last y lost": {},
        "last channel lost": {},
        "last state of the last channel lost": {"last state": [True]},
        "last state of the position before": {"last state": [True]},
    },
}


def shows(case: Case, mistake: str) -> bool:
    """Whether a kernel with a mistake, and else right, gets a case wrong; with none, whether a right one does."""
    return any(bool(case.wrong(name, m).any()) for name, m in results(case, mistake).items())


def far(case: Case, mistake: str) -> float:
    """How many times the tolerance the worst entry is off."""
    away = {name: (m.double() - case.expected[name]).abs() for name, m in results(case, mistake).items()}
    return max(float((m / case.tolerance[name].clamp(min=1e-300)).max()) for name, m in away.items())


def results(case: Case, mistake: str) -> dict[str, torch.Tensor]:
    """What a kernel with a mistake returns."""
    found = {"conv": _conv, "norm": _norm, "delta_rule": _delta}.get(case.op, _scan)(case, mistake)
    kept = {name: np.ascontiguousarray(m) for name, m in found.items() if name in case.expected}
    return {name: torch.from_numpy(m).to(case.results_in(name)) for name, m in kept.items()}


def _arrays(case: Case) -> Arrays:
    return {name: m.double().numpy() if m.is_floating_point() else m.numpy() for name, m in case.inputs.items()}


def _silu(z: np.ndarray, mistake: str) -> np.ndarray:
    return np.maximum(z, 0) if mistake == "silu is a relu" else z / (1 + np.exp(-z))


def _exp(x: np.ndarray, mistake: str) -> np.ndarray:
    found = np.exp(x)
    if mistake == "exp in half":
        return found.astype(np.float16).astype(np.float64)
    return np.round(found) if mistake == "exp is 0 or 1" else np.ones_like(x) if mistake == "nothing decays" else found


def _mistaken(given: Arrays, mistake: str, time: int, channel: Mapping[str, int], column: Mapping[str, int]) -> None:
    """Change the operands of a case: those of another row, position, channel or column, or none."""
    name, _, where = mistake.partition(" of ")
    if mistake.endswith(" ignored"):
        given[mistake.removesuffix(" ignored")] = None
    elif given.get(name) is None:
        return
    elif where == "row 0":
        given[name] = np.broadcast_to(given[name][:1], given[name].shape)
    elif where == "the position before":
        m = np.moveaxis(given[name], time, 0)
        given[name] = np.moveaxis(np.concatenate([m[:1], m[:-1]]), 0, time)
    elif where == "another channel":
        given[name] = np.roll(given[name], 1, channel[name])
    elif where == "another column":
        given[name] = np.roll(given[name], 1, column[name])


def _begins(ids: np.ndarray | None, batch: int, length: int, mistake: str) -> np.ndarray:
    """(b, l): where a state begins with nothing."""
    found = np.zeros((batch, length), bool)
    if ids is not None:
        found[:, 1:] = ids[:, 1:] != ids[:, :-1]
    if mistake == "documents a position late":
        found = np.pad(found, ((0, 0), (1, 0)))[:, :-1]
    if mistake.startswith(("state lost at ", "window lost at ")):
        place = mistake.rpartition(" ")[2]
        at = int(place) if place.isdigit() else length - 1
        found[:, at : at + 1] |= length > 1
    return found


def _plain(case: Case) -> Arrays:
    """The operands of either scan by one set of names: u, z (b, l, d), dt (b, l, d), A (d, n), B, C (b, l, g, n)."""
    m = _arrays(case)
    if case.op == "selective_scan":
        grouped = lambda x: np.moveaxis(x[:, None] if x.ndim == 3 else x, 3, 1)
        found = {"u": m["u"], "dt": m["delta"], "z": m.get("z")}
        found = {key: None if x is None else np.moveaxis(x, 2, 1) for key, x in found.items()}
        found |= {"A": m["A"], "B": grouped(m["B"]), "C": grouped(m["C"]), "D": m.get("D")}
        found |= {"bias": m.get("delta_bias"), "h": m.get("initial_state"), "softplus": case.options["delta_softplus"]}
        return found | {"wide": 1, "each": False}
    batch, length, _, p = m["x"].shape
    flat = lambda x: None if x is None else x.reshape(batch, length, -1)
    wide = lambda x: None if x is None else np.repeat(x, p, -1)
    D, h = m.get("D"), m.get("initial_states")
    found = {"u": flat(m["x"]), "dt": wide(m["dt"]), "A": wide(m["A"])[:, None], "B": m["B"], "C": m["C"]}
    found |= {"D": D if D is None else D.reshape(-1) if D.ndim == 2 else wide(D), "z": flat(m.get("z"))}
    found |= {"bias": wide(m.get("dt_bias")), "h": h if h is None else h.reshape(batch, -1, h.shape[-1])}
    options = {"softplus": case.options["dt_softplus"], "limits": case.options.get("dt_limit")}
    return found | options | {"wide": p, "each": D is not None and D.ndim == 1}


def _scan(case: Case, mistake: str) -> Arrays:
    m, ids = _plain(case), case.inputs.get("seq_idx")
    p = m["wide"]
    channel = {"u": 2, "dt": 2, "z": 2, "A": 0, "D": 0, "bias": 0, "h": 1}
    name, _, where = mistake.partition(" of ")
    if where == "another channel" and (name in ("dt", "A", "bias") or (name == "D" and m["each"])):  # one for each head
        m[name] = m[name] if m[name] is None else np.roll(m[name], p, channel[name])
    else:
        _mistaken(m, mistake, 1, channel, {"A": 1, "B": 3, "C": 3, "h": 2})
    if mistake == "B of the last position is of the one before" and m["B"].shape[1] > 1:
        m["B"] = np.concatenate([m["B"][:, :-1], m["B"][:, -2:-1]], 1)
    ids = None if ids is None or mistake == "documents ignored" else ids.numpy()
    ids = ids[:1].repeat(len(ids), 0) if ids is not None and mistake == "documents of row 0" else ids
    batch, length, channels = m["u"].shape
    groups = m["B"].shape[2]
    if mistake in ("B of group 0", "C of group 0"):
        m[mistake[0]] = np.broadcast_to(m[mistake[0]][:, :, :1], m[mistake[0]].shape)
    group = np.arange(channels) // (channels // groups)
    group = np.arange(channels) // p % groups if mistake == "groups tiled" else group
    begins = _begins(ids, batch, length, mistake if "each" not in mistake else "")
    if mistake == "state lost at each chunk":
        begins[:, case.options["chunk_size"] :: case.options["chunk_size"]] = True
    dt = _steps(m, mistake)
    decay = _exp(dt[..., None] * m["A"], mistake)
    if mistake == "nothing decays at the last position":
        decay[:, -1] = 1
    written = (dt * m["u"])[..., None] * m["B"][:, :, group]
    h = np.zeros((batch, channels, m["B"].shape[3])) if m["h"] is None else m["h"]
    decay, held = decay * ~begins[..., None, None], np.empty(written.shape)
    for t in range(length):
        held[:, t] = h = decay[:, t] * h + written[:, t]
    y = (held * m["C"][:, :, group]).sum(-1)
    skip = 0 if m["D"] is None else m["D"] * m["u"]
    gate = 1 if m["z"] is None else _silu(m["z"], mistake)
    y = y * gate + skip if mistake == "gate before D" else (y + skip) * gate
    before = held[:, -2] if length > 1 else np.zeros_like(h) if m["h"] is None else m["h"]
    last = before if mistake == "last state of the position before" else h.copy()
    _lose(y, last, mistake)
    if case.op == "selective_scan":
        return {"y": np.moveaxis(y, 1, 2), "last_state": last}
    shape = case.expected["y"].shape
    return {"y": y.reshape(shape), "last_state": last.reshape(batch, *shape[2:], -1)}


def _steps(m: Arrays, mistake: str) -> np.ndarray:
    dt = m["dt"] if m["bias"] is None else m["dt"] + m["bias"]
    if m["softplus"]:
        dt = np.maximum(dt, 0) if mistake == "softplus is a relu" else np.log1p(np.exp(dt))
    if m.get("limits"):
        dt = np.clip(dt, -np.inf if mistake == "least step ignored" else m["limits"][0], m["limits"][1])
    return dt


def _lose(y: np.ndarray, last: np.ndarray, mistake: str) -> None:
    """Parts of the results: y (b, l, d), last (b, d, n)."""
    lost: dict[str, Callable[[], Any]] = {
        "first y lost": lambda: y[:, 0].fill(0),
        "last y lost": lambda: y[:, -1].fill(0),
        "y of the last channel lost": lambda: y[:, :, -1].fill(0),
        "y of the last row lost": lambda: y[-1].fill(0),
        "last state of the last channel lost": lambda: last[:, -1].fill(0),
        "last state of the last column lost": lambda: last[:, :, -1].fill(0),
        "last state of row 0": lambda: np.copyto(last, last[:1].copy()),
    }
    lost.get(mistake, lambda: None)()


def _conv(case: Case, mistake: str) -> Arrays:
    m = _arrays(case)
    _mistaken(m, mistake, 2, {"x": 1, "weight": 0, "bias": 0}, {})
    x, weight, window = m["x"], m["weight"].copy(), m.get("initial_states")
    (batch, channels, length), taps = x.shape, weight.shape[1]
    weight = weight[:, ::-1] if mistake == "taps in reverse" else weight
    if mistake == "oldest tap ignored":
        weight[:, 0] = 0
    ids = None if mistake == "documents ignored" else m.get("seq_idx")
    ids = ids[:1].repeat(batch, 0) if ids is not None and mistake == "documents of row 0" else ids
    number = _begins(ids, batch, length, mistake).cumsum(1)
    number = np.pad(number, ((0, 0), (taps - 1, 0)))  # what stood before belongs to the first
    window = np.zeros((batch, channels, taps - 1)) if window is None or mistake == "window ignored" else window
    past, y = np.concatenate([window, x], 2), np.zeros(x.shape)
    for k in range(taps):
        same = number[:, k : k + length] == number[:, taps - 1 :]
        y += weight[:, k, None] * past[:, :, k : k + length] * same[:, None]
    y = y if m.get("bias") is None else y + m["bias"][:, None]
    y = _silu(y, mistake) if case.options["activation"] and mistake != "silu ignored" else y
    if mistake in ("first y lost", "last y lost"):
        y[..., 0 if mistake == "first y lost" else -1] = 0
    early = int(mistake == "last window one position early")
    last = np.pad(past, ((0, 0), (0, 0), (early, 0)))[:, :, length : length + taps - 1]
    return {"y": y, "last_state": last[:1].repeat(batch, 0) if mistake == "last window of row 0" else last}


def _norm(case: Case, mistake: str) -> Arrays:
    m = _arrays(case)
    _mistaken(m, mistake, 1, {}, {})
    x, options = m["x"], case.options
    gate = 1 if m.get("z") is None else _silu(m["z"], mistake)
    after = options["norm_before_gate"] != (mistake == "gate on the other side")
    values = x if after else x * gate
    size = x.shape[-1] if mistake == "mean over all groups" else options["group_size"]
    rows = values.reshape(*x.shape[:-1], -1, size)
    mean = (rows * rows).mean(-1, keepdims=True)
    mean = np.concatenate([mean[:, :1], mean[:, :-1]], 1) if mistake == "mean of the position before" else mean
    y = (rows / np.sqrt(mean + (0 if mistake == "epsilon ignored" else options["eps"]))).reshape(x.shape)
    y = y * (1 if m["weight"] is None else m["weight"]) * (gate if after else 1)
    if mistake == "last channel lost":
        y[..., -1] = 0
    return {"y": y}


def _delta(case: Case, mistake: str) -> Arrays:
    m = _arrays(case)
    m["h"] = m.get("initial_state")
    _mistaken(m, mistake, 1, {}, {})
    q, k, v = m["q"], m["k"], m["v"]
    if case.options["use_qk_l2norm_in_kernel"] and mistake != "norm ignored":
        unit = lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)
        q, k = unit(q), k if mistake == "norm of k ignored" else unit(k)
    heads, spread = v.shape[2], v.shape[2] // q.shape[2]
    reads = np.arange(heads) % q.shape[2] if mistake == "heads tiled" else np.arange(heads) // spread
    q, k = q[:, :, reads] / np.sqrt(q.shape[-1]), k[:, :, reads]
    decay = np.ones_like(m["g"]) if mistake == "decay ignored" else _exp(m["g"], mistake)
    beta = np.ones_like(m["g"]) if mistake == "β ignored" else m["beta"]
    beta = np.minimum(beta, 1) if mistake == "β at most 1" else beta
    ids = None if mistake == "documents ignored" else m.get("seq_idx")
    begins = _begins(ids, len(v), v.shape[1], mistake)
    h = np.zeros((len(v), heads, k.shape[-1], v.shape[-1])) if m["h"] is None else m["h"]
    y, before, late = np.empty(v.shape), h, mistake == "decay behind the write"
    for t in range(v.shape[1]):
        before = h
        h = h * ~begins[:, t, None, None, None]
        h = h if late else decay[:, t, :, None, None] * h
        held = 0 if mistake == "erasure ignored" else np.einsum("bhkv,bhk->bhv", h, k[:, t])
        h = h + k[:, t, :, :, None] * (beta[:, t, :, None] * (v[:, t] - held))[:, :, None]
        h = decay[:, t, :, None, None] * h if late else h
        y[:, t] = np.einsum("bhkv,bhk->bhv", h, q[:, t])
    last = before.copy() if mistake == "last state of the position before" else h.copy()
    if mistake == "last y lost":
        y[:, -1] = 0
    if mistake == "last channel lost":
        y[..., -1] = 0
    if mistake == "last state of the last channel lost":
        last[..., -1] = 0
    return {"y": y, "last_state": last}
