"""What is proved of the host's logits in a direct sum, for every text and every order of addition.

Let d and D be the widths, D/d a power of four, and let squares of the circuit's lanes vanish (`compiler.graft.faint`).

Theorem. Every number that the host's layers compute in the direct sum is the number that they compute alone, bit for
bit, in every arithmetic in which the result of a sum depends on neither the order of its terms nor on terms that are 0,
and a function's result on its argument alone.
Proof, by induction over the operations. The stream enters the host's layers as [x | faint | 0 | 0]: the circuit's
layers write 0 to the host's lanes, and their last one takes a ballast lane a·K away by a product that is exactly −a·K.
A norm sums the squares of x, and zeros; the mean is d/D times the host's, as ε is, so its root is √(d/D) times, and the
weight √(d/D) w undoes it: all three are powers of two. Every weight that leads from a lane, channel or column of the
circuit or the padding to one of the host is 0, so each sum of the host has its own terms and zeros. Everything else is
elementwise. □

In hosts with the gated delta rule the stream holds √(D/d)·x instead, so that the mean is the host's and ε and the
weights stay; what reads and writes the stream has that power of two in its weights (`families/delta.py`).

Libraries' sums do depend on the order: for the sizes at hand they may choose another. So bit equality of two runs is a
matter of these (`compiler.graft.measure` says what this machine's give), and then each of the logits is one that the
host itself has under an allowed order.

How much another order changes is a matter of the host: no bound can be read from sizes. A layer may multiply what
differs by any factor, and the next one again. So the only bound that holds for every text and is read from weights
alone is that of the last norm: behind it the stream is at most √d long, hence |logit_v| <= √d ‖w ∘ row_v‖ =: M_v, and
two values differ by at most 2 max M_v (a test has a host that comes within a factor of five of it).

Where D/d is no power of four, the weights √(d/D) w are rounded, so each norm's factor is another by the relative
`norm_change`, over the reals, and nothing is bit-equal. The same bound holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from compiler.digits import at_most
from compiler.graft.families.family import HostFamily

_SLACK = 2.0**-40  # of this module's own float64


def proved(family: HostFamily, host: Any, tensors: Mapping[str, Tensor], width: int, unit: float) -> dict[str, Any]:
    """`norm_change`, `logit_bound`, and what they say in a sentence. tensors: of the direct sum, which is `width` wide;
    unit: the roundoff of its numbers.
    """
    change, bound = norm_change(family, host, tensors, width), logit_bound(family, host, width, unit)
    text = (
        "the host's logits are equal bit for bit in every arithmetic whose sums do not depend on their order"
        if change == 0
        else f"each norm's factor changes by at most {at_most(change, 2)} of itself"
    )
    most = f"; whatever the order, none changes by more than the host's range, {at_most(bound)}"
    return {"norm_change": change, "logit_bound": bound, "proved": text + most}


def loudest_host_score(family: HostFamily, host: Any) -> float:
    """A bound on every |logit| of the host over the reals: a normalised stream is at most √d long."""
    rows = host.get_output_embeddings().weight.detach().double() * family.last_norm(host)
    return loudest_score(rows, host.config.hidden_size)


def loudest_score(rows: Tensor, d_model: int) -> float:
    """The same for these rows w ∘ row_v: (vocabulary, lanes)."""
    return float(rows.square().sum(-1).max().sqrt()) * float(d_model) ** 0.5 * (1 + _SLACK)


def logit_bound(family: HostFamily, host: Any, width: int, unit: float) -> float:
    """What no two of a host's logits, before and after, differ by, for any text and order: their range.

    width: of the direct sum; unit: the roundoff of its numbers, whose sums are kept in float32.
    """
    one_sum = 1 / (1 - (width + 8) * 2.0**-24)
    return 2 * loudest_host_score(family, host) * one_sum**2 * (1 + unit) ** 4


def norm_change(family: HostFamily, host: Any, tensors: Mapping[str, Tensor], width: int) -> float:
    """The largest relative change of a norm's factor, over the reals, by what widening rounds; 0 where nothing is.

    tensors: of the direct sum.
    """
    d_model = host.config.hidden_size
    worst = 0.0
    for own, wide in _norms(family, host, tensors):
        used = own != 0
        factor = wide[:d_model].double()[used] * (width / d_model) ** 0.5 / own.double()[used]
        worst = max(worst, float((factor - 1).abs().max()) if used.any() else 0.0)
    return worst if worst <= _SLACK else worst + 2.0**-24  # ε, half of whose two roundings a root keeps


def _norms(family: HostFamily, host: Any, tensors: Mapping[str, Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """(weight of a norm, the same in the direct sum), of those that are changed."""
    weights = family.layer_norms(host)
    if not weights:
        return
    before = len({name.split(".")[2] for name in tensors if name.startswith(family.layers)}) - len(weights)
    yield host.get_parameter(family.final_norm).detach(), tensors[family.final_norm]
    for i, (name, weight) in enumerate(weights):
        yield weight, tensors[f"{family.layers}{before + i}.{name}"]
