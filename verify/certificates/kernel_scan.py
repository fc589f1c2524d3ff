"""Every window of a one-block module, sorted into what it writes, what it stores and what it asks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from compiler.language.input_language import InputLanguage
from verify.certificates.ask import Ask, Windows
from verify.certificates.certificate import Refused
from verify.certificates.mixer import Mixer, Ports
from verify.certificates.windows import after, check_count, histories, spelled

MOST_WRITES = 2**18


@dataclass(frozen=True, eq=False)
class Writes:
    """The windows that add something to the state: Σ_c Σ_n charge_c · column_n.

    windows: (n, reach); charge: (n × channels) Δ·x̂; columns: (n × columns) B; slot: what the window stores in, −1 for
        nothing.
    """

    windows: Windows
    charge: sparse.csr_array
    columns: sparse.csr_array
    slot: np.ndarray


@dataclass(frozen=True, eq=False)
class Read:
    """Windows that ask for one slot through equal ports.

    columns: C; gate: silu(z); own: (d_model,) what the window itself adds to the head's input, its own write included.
    answer: what the window itself stores in the slot, or None. windows: all of them.
    """

    slot: int
    columns: np.ndarray
    gate: np.ndarray
    own: np.ndarray
    answer: int | None
    windows: list[tuple[int, ...]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Scan:
    """What the enumeration found.

    stores: slot → [(window, answer, row of `writes` or −1)]; count: windows gone through.
    """

    writes: Writes
    stores: dict[int, list[tuple[tuple[int, ...], int, int]]]
    reads: list[Read]
    count: int


def scan(mixer: Mixer, language: InputLanguage, ask: Ask, stream: np.ndarray) -> Scan:
    """Go through every window that the language spells; refuse where the state would forget.

    stream: (tokens, d_model) what passes by the block, zeros without residual.
    """
    vocab = language.alphabet.size
    reach = max(mixer.reach, ask.reach)
    check_count(vocab, reach)
    past = histories(range(vocab), reach - 1)
    writes, count, total = [], 0, 0
    stores: dict = {}
    reads: dict = {}
    for token in range(vocab):
        windows = after(past, token)
        windows = windows[spelled(windows, language)]
        if not len(windows):
            continue
        count += len(windows)
        ports = mixer.ports(windows)
        charge = ports.delta * ports.x
        writing = np.flatnonzero((charge != 0).any(axis=1) & (ports.write != 0).any(axis=1))
        _check_memory(mixer, charge[writing], ports.write[writing])
        slot, answer = ask.stores(windows)
        row = np.full(len(windows), -1)
        row[writing] = total + np.arange(len(writing))
        total += len(writing)
        if total > MOST_WRITES:
            raise Refused(f"more than {MOST_WRITES:,} windows write to the state, and the certificate adds up no more")
        writes.append(
            (windows[writing], sparse.csr_array(charge[writing]), sparse.csr_array(ports.write[writing]), slot[writing])
        )
        for i in np.flatnonzero(slot >= 0):
            stores.setdefault(int(slot[i]), []).append((tuple(windows[i].tolist()), int(answer[i]), int(row[i])))
        _collect_reads(reads, windows, ports, mixer, charge, stream[token], (ask.asks(windows), slot, answer))
    if not reads:
        raise Refused("no window of the language asks for anything, so there is nothing to prove")
    return Scan(_stacked(writes), stores, list(reads.values()), count)


def _check_memory(mixer: Mixer, charge: np.ndarray, columns: np.ndarray) -> None:
    """Refuse unless A = 0 wherever something is written: the sum over positions is then the state."""
    decay = mixer.decay if mixer.decay.ndim == 2 else mixer.decay[:, None]
    if not decay.any():
        return
    written = (charge != 0).T.astype(np.float32) @ (columns != 0).astype(np.float32) > 0
    if (written & (decay != 0)).any():
        channel, column = np.argwhere(written & (decay != 0))[0]
        value = np.broadcast_to(decay, written.shape)[channel, column]
        raise Refused(
            f"the state of channel {channel}, column {column} decays (A = {value:.6g}), and the "
            "certificate is for states that never do"
        )


def _collect_reads(
    reads: dict, windows: Windows, ports: Ports, mixer: Mixer, charge: np.ndarray, stream: np.ndarray, labels: tuple
) -> None:
    """Put every asking window with those that read alike."""
    asked, slot, answer = labels
    for i in np.flatnonzero(asked >= 0):
        gate = mixer.gate[windows[i, 0] + 1]
        seen = charge[i] * (ports.read[i] @ ports.write[i]) + mixer.skip * ports.x[i]
        own = mixer.out @ (gate * seen) + stream + 0.0
        stored = int(answer[i]) if slot[i] == asked[i] else None
        key = (int(asked[i]), stored, ports.read[i].tobytes(), gate.tobytes(), own.tobytes())
        read = reads.setdefault(key, Read(int(asked[i]), ports.read[i], gate, own, stored))
        read.windows.append(tuple(windows[i].tolist()))


def _stacked(parts: list[tuple]) -> Writes:
    windows, charge, columns, slot = zip(*parts, strict=True)
    return Writes(
        np.vstack(windows),
        sparse.csr_array(sparse.vstack(charge)),
        sparse.csr_array(sparse.vstack(columns)),
        np.concatenate(slot),
    )
