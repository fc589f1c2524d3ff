"""`FalconMambaForCausalLM` as a host: a Mamba whose Δ, B and C each pass a norm without weights.

Of the host. d_state and dt_rank grow by the same factor 4^k. A norm over 4^k times as many places, the new ones 0, with
ε/4^k, gives 2^k times what it gave. dt_proj × 2^-k takes that from Δ; C·h is 4^k times what it was, so D × 4^k and
out_proj × 4^-k leave the output as it was. All of it are powers of two, which round nothing.

Of the circuit. A channel of constant output writes ballast into places of Δ, B and C that nothing else uses, so that
each norm divides by its K exactly (`exactness.ballast`). The ballast of B stands where C is 0 and that of C where B
is 0, so neither is ever read. dt_proj × K takes K from Δ again, D/(K_B K_C) and out_proj × K_B K_C from the output.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from compiler.analysis.affine_form import ONE
from compiler.exactness.ballast import choose_ballast, squares, with_constant_channels
from compiler.exactness.levels import CONSTANT
from compiler.graft.errors import GraftError
from compiler.graft.families.family import BRANCH, NO_MEAN, mean_is_exact
from compiler.graft.families.mamba import MambaHost
from compiler.graft.widen import times
from compiler.graft.widths import Widths

MOST_COLUMNS = 1 << 16
LARGEST_SCALE = 2.0**64  # of K_B·K_C: what it divides stays far above the least float32


class FalconMambaHost(MambaHost):
    model_type = "falcon_mamba"
    class_name = "FalconMambaForCausalLM"
    epsilons = ("layer_norm_epsilon", "mixer_rms_eps")

    def refused(self, config):
        for name in ("state_size", "time_step_rank"):
            if not mean_is_exact(int(getattr(config, name))):
                return f"its {name} is {getattr(config, name)}, {NO_MEAN}; {BRANCH}"
        return None

    def columns(self, host, blocks, n_lanes):
        state, rank = super().columns(host, blocks, n_lanes)
        factor = 1
        while factor * host.d_state <= MOST_COLUMNS:
            n, r = factor * host.d_state, factor * host.rank
            if n >= state + 2 * len(squares(n)) and r >= rank + len(squares(r)):
                return n, r
            factor *= 4
        raise GraftError(f"the circuit would need a d_state of more than {MOST_COLUMNS}; take a smaller circuit.")

    def misfit(self, host, blocks, n_lanes, inner):
        return super().misfit(host, blocks, n_lanes, inner - 1)  # one channel feeds the ballast of the ports

    def widened(self, state, host, wide):
        root = (wide.d_state // host.d_state) ** 0.5
        result = super().widened(state, host, wide)
        for name, factor in (("dt_proj.weight", 1 / root), ("D", root**2), ("out_proj.weight", root**-2)):
            result[name] = times(name, result[name], factor)
        return result

    def circuit_mixers(self, plan):
        one = int(plan.compiled.lanes.index[ONE][0])
        return [self._with_ballast(plan, block, one) for block in plan.blocks]

    def _with_ballast(self, plan, block, one: int) -> dict[str, Tensor]:
        """A mixer whose Δ, B and C pass their norms unchanged up to powers of two, which the weights behind undo."""
        wide, format = plan.wide, plan.compiled.context.format
        nowhere = sparse.csr_array((1, len(block.lanes)))
        text = "a constant that makes the norms of Δ, B and C exact"
        fed = with_constant_channels(block, one, np.array([CONSTANT]), nowhere, "port_ballast", text)
        tensors = self._emitted(plan, fed)
        reach, epsilon = _port_bounds(tensors, plan), plan.epsilons["mixer_rms_eps"]
        rank, n = wide.rank, wide.d_state
        count = len(squares(n))
        ports = ((0, rank), (rank, n), (rank + n, n))
        steps, write, read = (
            choose_ballast(size, np.append(reach[at : at + size], (epsilon * size) ** 0.5), format)
            for at, size in ports
        )
        ends = ((steps, rank), (write, rank + n - count), (read, rank + 2 * n))
        for ballast, end in ends:
            level = torch.tensor(ballast.factors) * (ballast.level / CONSTANT)
            tensors["x_proj.weight"][end - len(level) : end, len(block.channels.names)] = level
        scale = write.level * read.level
        if scale > LARGEST_SCALE:
            raise GraftError(
                f"the norms of B and C would need ballasts of {write.level:g} and {read.level:g}, whose product must "
                f"stay below {LARGEST_SCALE:g}; take a circuit of smaller numbers, or {BRANCH}."
            )
        tensors["dt_proj.weight"] *= steps.level
        tensors["D"] /= scale
        tensors["out_proj.weight"] *= scale
        return tensors

    def wide_epsilons(self, config, host: Widths, wide: Widths):
        own = config.mixer_rms_eps / (wide.d_state // host.d_state)
        return super().wide_epsilons(config, host, wide) | {"mixer_rms_eps": own}

    def complete(self, model, host):
        """The weights of the norms, which are ones."""
        for module in model.modules():
            for name, buffer in list(module.named_buffers(recurse=False)):
                if buffer.is_meta:
                    setattr(module, name, torch.ones(buffer.shape, dtype=buffer.dtype))


def _port_bounds(tensors: dict[str, Tensor], plan) -> np.ndarray:
    """A bound on |x_proj(x̂)| row by row: Δ, B and C before their norms."""
    lanes = np.zeros(plan.wide.d_model)
    lanes[plan.lanes] = plan.bounds
    of = lambda name: tensors[name].double().abs().numpy()
    rows = of("in_proj.weight")[: plan.wide.d_inner] @ lanes
    reach = of("conv1d.weight").sum((1, 2)) * rows + of("conv1d.bias")
    return of("x_proj.weight") @ reach
