"""Appendices A and B of paper D by textbook matrices: what state makes a filter, and what ends its window."""

import numpy as np
import pytest
import torch

from compiler.machines.fnn_ssm.layers import Convolution, Tap
from compiler.machines.fnn_ssm.module import ConvolutionSSM

STEPS = 40


def rotation(angle: float) -> np.ndarray:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def of_appendix_a(c1: float, a1: float, c2: float, a2: float, window: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(A, B, C) of one channel: two rotations, B = (1, 0, 1, 0), C = (c1, 0, 0, c2)."""
    turns = [2 * np.pi * a / (window + 1) for a in (a1, a2)]
    a = np.block([[rotation(turns[0]), np.zeros((2, 2))], [np.zeros((2, 2)), rotation(turns[1])]])
    return a, np.array([1.0, 0, 1, 0]), np.array([c1, 0, 0, c2])


def kernel_of_the_module(numbers: tuple[float, ...], window: int) -> np.ndarray:
    """Its h_j beyond the window too: a longer window with frequencies that are as much larger is the same wave."""
    layer = ConvolutionSSM(1, 1, STEPS - 1, dtype=torch.float64)
    scale = STEPS / (window + 1)
    with torch.no_grad():
        for name, number in zip(("c1", "a1", "c2", "a2"), numbers, strict=True):
            getattr(layer, name).fill_(number * (scale if name in ("a1", "a2") else 1))
    return layer.kernel(STEPS).detach().numpy()[:, 0]


@pytest.mark.parametrize("seed", range(5))
def test_four_states_make_the_filter_in_both_conventions(seed) -> None:
    """y_t = C x_t with x_t = A x_{t−1} + B u_t, and x_{t+1} = A x_t + B u_t, y_t = C A x_t + C B u_t."""
    rng, window = np.random.default_rng(seed), 12
    numbers = tuple(rng.uniform(-2, 2, 4))
    a, b, c = of_appendix_a(*numbers, window)
    expected = kernel_of_the_module(numbers, window)
    u = np.eye(STEPS)[0]
    now, later, found = np.zeros(4), np.zeros(4), []
    for t in range(STEPS):
        now = a @ now + b * u[t]
        found.append((c @ now, c @ a @ later + c @ b * u[t]))
        later = a @ later + b * u[t]
    assert np.abs(np.array(found).T - expected).max() < 1e-12


@pytest.mark.parametrize(("a1", "a2"), [(0, 1), (3, 5), (6, -2), (0.5, 1), (2, 1.25), (1 / 3, 2 / 3)])
def test_a_window_closes_by_itself_exactly_for_whole_frequencies(a1, a2) -> None:
    """A^(U+1) = I iff both are whole; the difference of two such systems is then the windowed filter."""
    window = 6
    a, b, c = of_appendix_a(1.0, a1, -0.5, a2, window)
    power = np.linalg.matrix_power(a, window + 1)
    whole = float(a1).is_integer() and float(a2).is_integer()
    assert (np.abs(power - np.eye(4)).max() < 1e-12) == whole
    u = np.random.default_rng(0).standard_normal(STEPS)
    x = dropped = np.zeros(4)
    for t in range(STEPS):
        gone = u[t - window - 1] if t > window else 0.0
        x, dropped = a @ x + b * u[t], a @ dropped + b * gone
        windowed = sum(c @ np.linalg.matrix_power(a, j) @ b * u[t - j] for j in range(min(t, window) + 1))
        assert abs(c @ (x - power @ dropped) - windowed) < 1e-11
        assert not whole or abs(c @ (x - dropped) - windowed) < 1e-11


@pytest.mark.parametrize("places", [2, 3, 8, 11])
def test_delays_take_half_as_many_channels_as_places_and_one(places) -> None:
    """⌊(U + 1)/2⌋ + 1 channels, but one where U = 1; all delays together no more."""
    for delay in range(1, places):
        convolution = Convolution(1, places - 1, (Tap(0, delay),))
        assert convolution.bank.channels == (1 if places == 2 else places // 2 + 1)
