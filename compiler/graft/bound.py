"""What is proved of the host's logits in a direct sum, for every text and every order of addition.

Let d and D be the widths, D/d a power of four, and let squares of the circuit's lanes vanish (`compiler.graft.faint`).

Theorem. Every number that the host's layers compute in the direct sum is the number that they compute alone, bit for
bit, in every arithmetic in which the result of a sum depends on neither the order of its terms nor on terms that are 0,
a function's result on its argument alone, and the root of 4^k times a number is 2^k times its root; as long as no
number that one of the two has times a power of two leaves the range of normal numbers.
Proof, by induction over the operations. The stream enters the host's layers as [x | faint | 0 | 0]: the circuit's
layers write 0 to the host's lanes, and their last one takes a ballast lane a·K away by a product that is exactly −a·K.
A norm sums the squares of x, and zeros; the mean is d/D times the host's, as ε is, so its root is √(d/D) times, and the
weight √(d/D) w undoes it: all three are powers of two. Every weight that leads from a lane, channel or column of the
circuit or the padding to one of the host is 0, so each sum of the host has its own terms and zeros. Everything else is
elementwise. □

The conditions, and how each is checked. Squares of the lanes vanish: by their bounds and FAINT (`faint.heard`). The
mean and ε do not leave the normal numbers: ε is at least 2^-80 in the host (`hosts.refused`) and 2^-100 in the direct
sum, beside which a mean below 2^-126 is lost in both. Weights of norms are what they should be, and normal: compared as
stored; where the product is scaled in their place, they are at least 2^-100. Every other weight that is scaled is
compared when it is (`widen.times`). A norm multiplies x by at least 1/√(mean + ε), so that a product may underflow
where x is tiny: the embedding's numbers are compared with that, and for what the layers compute the theorem has its
last clause. Where a condition fails, less is promised, by name.

In hosts with the gated delta rule the stream holds √(D/d)·x instead, so that the mean is the host's and ε and the
weights stay; what reads and writes the stream has that power of two in its weights (`families/delta.py`).

Libraries' sums do depend on the order: for the sizes at hand they may choose another. So bit equality of two runs is a
matter of these (`compiler.graft.measure` says what this machine's give), and then each of the logits is one that the
host itself has under an allowed order.

How much another order changes is a matter of the host: no bound can be read from sizes. A layer may multiply what
differs by any factor, and the next one again. So the only bound that holds for every text and is read from weights
alone is that of the last norm: behind it the stream is at most √d long, hence |logit_v| <= √d ‖w ∘ row_v‖ =: M_v, and
two values differ by at most 2 max M_v (a test has a host that comes within a factor of six of it).

Where D/d is no power of four, the weights √(d/D) w are rounded, so each norm's factor is another by the relative
`norm_change`, over the reals, and nothing is bit-equal. The same holds where lanes are too loud to vanish. The bound
on logits is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from compiler.digits import at_most
from compiler.graft.faint import heard, norm_shrinks
from compiler.graft.families.family import HostFamily
from compiler.graft.planned import Plan
from compiler.graft.widths import is_exact

SAME = "same operands"  # the level at which logits are proved equal bit for bit
_SLACK = 2.0**-40  # of this module's own float64
_LEAST_NORMAL = 2.0**-126
_LEAST_WEIGHT = 2.0**-100  # of a norm whose product is scaled: what it multiplies may be 2^-26
_OPERANDS = (
    "every number of the host is computed from the operands it had and zeros; libraries may add them in another order"
)
_WIDTH = (
    "the host's norm weights are rounded once more, for the square root of the widths is no power of two; take a width "
    "of 4^k times the host's to avoid it"
)
_WEIGHTS = "some of the host's norm weights are so small that they are rounded once more; scale them up to avoid it"
_UNDERFLOW = "some numbers of the host are so small that a norm's product leaves the range of normal numbers"
_LANES = "the squares of the circuit's lanes do not vanish in the host's norms; smaller numbers in it would avoid that"


def proved(plan: Plan, host: Any, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The promise of the host: `level`, what that means in a `text`, `norm_change`, `logit_bound`, and what is `proved`
    in a sentence. tensors: of the direct sum.
    """
    weights, lanes = norm_change(plan, host, tensors), lanes_change(plan)
    level, text = _level(plan, host, tensors, weights, lanes)
    unit = 2.0**-plan.compiled.context.format.significand
    bound = logit_bound(plan.family, host, plan.wide.d_model, unit) * (1 + weights)
    if level == SAME:
        what = (
            "the host's logits are equal bit for bit in every arithmetic whose sums do not depend on their order, as "
            "long as no number that is scaled by a power of two leaves the range of normal numbers"
        )
    elif weights + lanes:
        what = f"each norm's factor changes by at most {at_most(weights + lanes, 2)} of itself over the reals"
    else:
        what = "each norm's factor is the host's over the reals"
    most = f"; whatever the order, none of the host's logits changes by more than its range, {at_most(bound)}"
    promise = {"level": level, "text": text, "norm_change": weights + lanes, "logit_bound": bound}
    return promise | {"proved": what + most}


def _level(plan: Plan, host: Any, tensors: Mapping[str, Tensor], weights: float, lanes: float) -> tuple[str, str]:
    """(the level, what it means): of what is stored, not of what was planned."""
    if not is_exact(plan.host.d_model, plan.wide.d_model):
        return "rounded norm weights", _WIDTH
    if weights:
        return "rounded norm weights", _WEIGHTS
    if _underflows(plan, host, tensors):
        return "numbers that underflow", _UNDERFLOW
    if lanes:
        return "lanes that are heard", _LANES
    return SAME, _OPERANDS


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


def norm_change(plan: Plan, host: Any, tensors: Mapping[str, Tensor]) -> float:
    """The largest relative change of a norm's factor, over the reals, by weights that are not stored as they should be;
    0 where all are. tensors: of the direct sum.
    """
    worst = 0.0
    for exact, stored in _norms(plan, host, tensors):
        used = exact != 0
        worst = max(worst, float((stored[used] / exact[used] - 1).abs().max()) if used.any() else 0.0)
    if is_exact(plan.host.d_model, plan.wide.d_model):
        return worst
    return worst if worst <= _SLACK else worst + 2.0**-24  # ε, half of whose two roundings a root keeps


def lanes_change(plan: Plan) -> float:
    """The same by the squares of the circuit's lanes, for a stream of any length."""
    return norm_shrinks(heard(plan.faint, plan.bounds), plan.wide.d_model, plan.epsilon)


def _underflows(plan: Plan, host: Any, tensors: Mapping[str, Tensor]) -> bool:
    """Whether a weight of a norm, or a number of the embedding behind its norm, is too small to be scaled safely."""
    scaled = plan.family.scale(plan.host, plan.wide) != 1
    table = host.get_input_embeddings().weight.detach().double()
    mean = table.square().mean(-1, keepdim=True) + plan.family.epsilon(host.config)
    least = _LEAST_NORMAL**0.5 if scaled else _LEAST_NORMAL * mean.sqrt() * (1 + _SLACK)  # scaled: its square, too
    if ((table != 0) & (table.abs() < least)).any():
        return True
    if any(_some_below(_LEAST_WEIGHT, weight) for weight in plan.family.unscaled_norms(host)):
        return True
    return any(_some_below(_LEAST_NORMAL, stored) for _, stored in _norms(plan, host, tensors))


def _some_below(least: float, weight: Tensor) -> bool:
    """Whether a number that is not 0 is smaller than that."""
    return bool(((weight != 0) & (weight.abs() < least)).any())


def _norms(plan: Plan, host: Any, tensors: Mapping[str, Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """(what a norm's weights should be, what is stored), in float64, of those that are scaled."""
    family, root = plan.family, (plan.host.d_model / plan.wide.d_model) ** 0.5
    layers = family.backbone(host).layers
    for i, layer in enumerate(layers):
        own = {name: weight.detach().double() for name, weight in layer.named_parameters() if "norm" in name}
        for name, weight in family.placed_norms(own, plan.host, plan.wide).items():
            yield weight * root, tensors[f"{family.layers}{len(plan.blocks) + i}.{name}"].double()
    if family.scale(plan.host, plan.wide) == 1:
        own = host.get_parameter(family.final_norm).detach().double()
        yield own * root, tensors[family.final_norm][: len(own)].double()
