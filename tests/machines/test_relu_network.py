"""ReLU networks: the same function on Fractions, floats and in torch, however they are put together."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from compiler.machines.fnn_ssm.relu_network import ReluNetwork, SparseAffine, linear, of_one_input, select, side_by_side

FIRST, SECOND = [[1, -2], [Fraction(1, 2), 0], [0, 3]], [[1, -1, 2], [0, 4, 0]]
BIAS = [1, 0, Fraction(-3, 4)]


@pytest.fixture
def network() -> ReluNetwork:
    return ReluNetwork((SparseAffine.dense(FIRST, BIAS), SparseAffine.dense(SECOND)))


def plain(x: np.ndarray) -> np.ndarray:
    first, second = np.array(FIRST, dtype=float), np.array(SECOND, dtype=float)
    return np.maximum(x @ first.T + np.array(BIAS, dtype=float), 0) @ second.T


def points(count: int = 200) -> np.ndarray:
    return np.random.default_rng(0).integers(-64, 64, (count, 2)) / 16


def test_sizes_are_counted_on_the_matrices(network) -> None:
    assert network.sizes() == {"L": 2, "W": 3, "S": 4 + 2 + 4, "B": 4.0}


def test_fractions_floats_and_torch_agree(network) -> None:
    x = points()
    exact = network(np.array([[Fraction(v) for v in row] for row in x.tolist()], dtype=object))
    assert all(isinstance(v, (int, Fraction)) for v in exact.reshape(-1))
    assert np.array_equal(exact.astype(float), plain(x))
    assert np.array_equal(network(x), plain(x))
    assert np.array_equal(network.module()(torch.from_numpy(x)).detach().numpy(), plain(x))
    assert network.module(torch.float32)[0].weight.dtype == torch.float32
    assert network(x.reshape(4, 50, 2)).shape == (4, 50, 2)


def test_after_one_another_maps_that_meet_are_one(network) -> None:
    twice = network.then(network)
    assert twice.depth == 3 and np.array_equal(twice(points()), plain(plain(points())))


def test_padding_changes_the_depth_only(network) -> None:
    assert network.padded(2).layers == network.layers
    assert network.padded(5).depth == 5 and np.array_equal(network.padded(5)(points()), plain(points()))
    with pytest.raises(ValueError, match="no form of depth 1; take 2"):
        network.padded(1)


def test_beside_one_another(network) -> None:
    x, swap = points(), select(2, [1, 0])
    both = side_by_side(network, swap)
    assert np.array_equal(both(np.concatenate([x, x], 1)), np.concatenate([plain(x), x[:, ::-1]], 1))
    assert np.array_equal(of_one_input(network, swap)(x), np.concatenate([plain(x), x[:, ::-1]], 1))
    assert both.depth == 2 and of_one_input(network, swap).inputs == 2


def test_what_does_not_fit_is_refused(network) -> None:
    with pytest.raises(ValueError, match="2 numbers come out and 3 are read"):
        network.then(select(3, [0]))
    with pytest.raises(ValueError, match="takes 2 numbers and was given 3"):
        network(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="column 2 of an affine map lies outside its 2 inputs"):
        linear(2, [{2: 1}])
    with pytest.raises(ValueError, match="1 rows has a bias of 2 entries"):
        linear(2, [{0: 1}], [0, 1])


def test_zeros_are_no_entries() -> None:
    cancelled = linear(1, [{0: 1}, {0: 1}]).then(linear(2, [{0: 1, 1: -1}]))
    assert cancelled.nonzeros == 0 and cancelled.layers[0].rows == ({},)
