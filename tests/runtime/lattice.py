"""Inputs on which a scan must be exact, and the same recurrences in int64.

Every step size is 0 or 128 and every decay rate 0 or at least 1, so each transition exp(delta*A) is exactly 1 or 0;
everything else is an integer so small that no sum reaches 2^24.
"""

import numpy as np
import torch

STEP = 128


def integers(generator, *shape, low=-1, high=1):
    """Returns float32 integers of the given shape, uniform in low..high."""
    return torch.randint(low, high + 1, shape, generator=generator).float()


def step_sizes(generator, *shape):
    """Returns float32 step sizes, each 0 (keep) or 128 (erase wherever the rate is not 0)."""
    return STEP * integers(generator, *shape, low=0)


def rates(generator, *shape):
    """Returns A: about half -0.0 (never forgets), the others -1, -2 or -3."""
    return -integers(generator, *shape, low=0, high=3) * integers(generator, *shape, low=0)


def scan_inputs(seed, batch, channels, d_state, length, groups=None):
    """Returns (u, delta, A, B, C), shaped for `selective_scan`; B and C have no group axis when `groups` is None."""
    g = torch.Generator().manual_seed(seed)
    columns = (batch, d_state, length) if groups is None else (batch, groups, d_state, length)
    u, delta = integers(g, batch, channels, length), step_sizes(g, batch, channels, length)
    return u, delta, rates(g, channels, d_state), integers(g, *columns), integers(g, *columns)


def int64(tensor):
    return tensor.double().numpy().astype(np.int64)


def exact_scan(u, delta, A, B, C):
    """The selective scan in int64: y (b, d, l) and the last state (b, d, n)."""
    u, delta, B, C = map(int64, (u, delta, B, C))
    B, C = (m if m.ndim == 4 else m[:, None] for m in (B, C))
    B, C = (m.repeat(u.shape[1] // m.shape[1], axis=1) for m in (B, C))  # (b, d, n, l)
    remembers = (A == 0).numpy()
    h = np.zeros((u.shape[0], *A.shape), np.int64)
    ys = []
    for t in range(u.shape[2]):
        step = delta[:, :, t, None]
        h = h * (remembers | (step == 0)) + step * u[:, :, t, None] * B[..., t]
        ys.append((h * C[..., t]).sum(-1))
    return np.stack(ys, axis=2), h


def ssd_inputs(seed, batch, length, heads, headdim, groups, d_state):
    """Returns (x, dt, A, B, C), shaped for `ssd_scan`."""
    g = torch.Generator().manual_seed(seed)
    columns = (batch, length, groups, d_state)
    x, dt = integers(g, batch, length, heads, headdim), step_sizes(g, batch, length, heads)
    return x, dt, rates(g, heads), integers(g, *columns), integers(g, *columns)


def exact_ssd(x, dt, A, B, C, initial=None):
    """The Mamba-2 scan in int64: y (b, l, h, p) and the last state (b, h, p, n)."""
    x, dt, B, C = map(int64, (x, dt, B, C))
    B, C = (m.repeat(x.shape[2] // m.shape[2], axis=2) for m in (B, C))  # (b, l, h, n)
    remembers = (A == 0).numpy()
    batch, length, heads, headdim = x.shape
    h = np.zeros((batch, heads, headdim, B.shape[3]), np.int64) if initial is None else int64(initial)
    ys = []
    for t in range(length):
        keep = (remembers | (dt[:, t] == 0))[..., None, None]
        h = h * keep + (dt[:, t, :, None] * x[:, t])[..., None] * B[:, t, :, None]
        ys.append((h * C[:, t, :, None]).sum(-1))
    return np.stack(ys, axis=1), h


def lattice_block(block):
    """Gives a real Mamba or Mamba2 `block` weights under which one-hot inputs keep every stream on a lattice.

    Pre-activations are multiples of 128, so SiLU and softplus round nothing; each step size is 0 or at least 352.
    """
    g = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.copy_(integers(g, *parameter.shape))
        block.in_proj.weight.mul_(STEP)
        block.conv1d.weight[:, :, :-1] = 0
        block.conv1d.weight[:, :, -1] = 1
        if block.conv1d.bias is not None:
            block.conv1d.bias.zero_()
        block.A_log.fill_(-200)
        block.A_log[::2] = 0
        if hasattr(block, "dt_proj"):
            block.x_proj.weight.div_(STEP)
            block.dt_proj.weight.mul_(512)
            block.dt_proj.bias.fill_(-160)
            block.D.mul_(32)  # the skip in the quantum of the states, 32 * 128
        else:
            block.in_proj.weight[-block.nheads :] *= 4
            block.dt_bias.fill_(-160)
            block.D.mul_(2**19)  # likewise: 32 * 128^3 here
    return block


def one_hot_inputs(batch, length, d_model):
    """Returns random one-hot vectors (b, l, d_model)."""
    tokens = torch.randint(d_model, (batch, length), generator=torch.Generator().manual_seed(0))
    return torch.nn.functional.one_hot(tokens, d_model).float()


def assert_exact(actual, expected):
    """Asserts that tensor `actual` holds exactly the integers `expected`, rounded to its dtype if that is coarser."""
    expected = torch.from_numpy(expected)
    assert expected.abs().max() < 2**24, "the test itself leaves the range of exact float32 integers"
    assert torch.equal(actual, expected.to(torch.float32).to(actual.dtype))
