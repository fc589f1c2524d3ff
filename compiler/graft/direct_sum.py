"""Host and circuit side by side in a plain checkpoint: `[host | circuit | padding | ballast]`, circuit layers first.

Layers of the circuit. The embedding writes the ballast lanes a_i·K with Σ a_i² = D, so that the norms of these layers
divide by K exactly, whatever the host's embedding (at most E long, which K absorbs, and ε) and the circuit hold. The
circuit's lanes stand in the stream times FAINT, so small that their squares are 0 (`faint`); their norm weight is
K/FAINT, so that every mixer of the circuit sees the lanes as they are and computes exactly what the compiler proved.
Its last block also takes the ballast away, by one channel of constant output. The host's lanes pass through these
layers untouched.

Layers of the host. The stream then holds the host's embedding as it was and the faint lanes, which are zeros to a norm.
D instead of d places are made up for by weights × √(d/D) and ε × d/D. So where D/d is a power of four, every number of
the host is computed from the operands that it had and zeros: what may differ is the order in which a library adds them.
What is proved of the logits stands in `bound`.

Scores. Behind the host's last norm a circuit lane c is c·r, r = 1/√(‖x‖²/D + ε') > 0 the same for all lanes of a
position. So the circuit's scores are right up to the positive factor κr of the position and rounding: with n lanes read
and u the unit roundoff, |computed − κr·score| ≤ γ_{n+2} κr Σ|weight|·b. A letter that leads by more than twice that in
the circuit leads in the model. κ puts letters above every host token where a letter stands and below elsewhere, as long
as the stream's root mean square stays below LOUDEST = 2^20.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from compiler.analysis.affine_form import ONE
from compiler.compiled import Compiled
from compiler.digits import at_most
from compiler.driver import compile
from compiler.exactness.ballast import Ballast, choose_ballast, with_constant_channels
from compiler.exactness.levels import CONSTANT
from compiler.graft.bound import loudest_score
from compiler.graft.errors import GraftError
from compiler.graft.faint import FAINTEST_SEEN, LOUDEST, MOST_HEARD, faint_level, heard, norm_shrinks
from compiler.graft.families import family_of
from compiler.graft.families.family import BRANCH, HostFamily
from compiler.graft.planned import Plan
from compiler.graft.sizes import wide_sizes
from compiler.ir.block import SelectiveBlock
from compiler.ir.coordinate import Coordinate
from compiler.language.circuit import Circuit

_LARGEST_SCALE = 2.0**90  # of κ: scores stay finite beside a stream of 2^-10
_LARGEST_LANE = 2.0**24  # of a number that is exact in float32, in steps of at most 1


def plan(host: Any, circuit: Circuit, dtype: str, width: int | None) -> Plan:
    """Sizes, ballast and scale for a host of transformers and a circuit with the guest in its alphabet.

    Raises CompileError where the circuit does not compile for the host's mixers, GraftError where there is no room.
    """
    family = family_of(host.config.model_type)
    assert family is not None  # read_host has seen to it
    compiled = compile(circuit, family.target, dtype)
    if not compiled.blocks:
        raise GraftError(
            f"circuit {circuit.name!r} is a function of the present token alone and has no block to graft."
        )
    bounds = compiled.lane_bounds()
    first = _with_ballast(compiled, ())
    wide = wide_sizes(family, host.config, first, compiled.lanes.count, width)
    own = family.widths(host.config)
    if family.scale(own, wide) != 1 and (family.last_norm(host) >= 1 / FAINTEST_SEEN).any():
        raise GraftError(
            "the host holds a circuit already, whose faint lanes no second one may scale; unite them by union or "
            "`construct compose`, and put them in as one."
        )
    length = _largest_square(host.get_input_embeddings().weight) ** 0.5
    epsilons = family.wide_epsilons(host.config, own, wide)

    def levels(row: float) -> tuple[Ballast, float]:
        return _levels(compiled, bounds, wide.d_model, row * family.scale(own, wide), epsilons[family.epsilons[0]])

    try:
        ballast, faint = levels(length)
    except ValueError:
        levels(0.0)  # fails where the circuit is too loud or too fine beside any host, in its own words
        raise GraftError(_too_loud(length, levels)) from None
    lanes = tuple(factor * ballast.level for factor in ballast.factors)
    blocks = tuple(_widened_taps(block, wide.d_conv) for block in _with_ballast(compiled, lanes))
    letters = compiled.head[: circuit.token_alphabet.size - 1]
    reach = float((abs(letters) @ bounds).max(initial=0.0))
    terms = int(np.diff(letters.indptr).max(initial=0))
    scale = _scale(family, host, compiled)
    return Plan(compiled, blocks, own, wide, ballast, faint, scale, bounds, reach, terms, epsilons, family)


def _levels(compiled: Compiled, bounds: np.ndarray, width: int, row: float, epsilon: float) -> tuple[Ballast, float]:
    """(the ballast of the circuit's norms, the level of its lanes) beside an embedding whose rows are at most so long
    in the stream. CompileError or GraftError where there is none.
    """
    beside = np.append(FAINTEST_SEEN * bounds, [row, (epsilon * width) ** 0.5])
    ballast = choose_ballast(width, beside, compiled.context.format)
    faint = faint_level(compiled, bounds, ballast.level)
    _check_heard(norm_shrinks(heard(faint, bounds), width, epsilon), faint, bounds)
    return ballast, faint


def _too_loud(length: float, levels: Callable[[float], object]) -> str:
    """What to do where a host's embedding leaves the circuit no room, and a shorter one would. levels: of a length."""
    factor = 2.0
    while not _passes(levels, length / factor):
        factor *= 2
    return (
        f"the host's embedding has a row of length {length:.3g}, and float32 has no room for a ballast of the norms "
        f"beside it from which the circuit can be read; scale the embedding down, to 1/{int(factor)} of what it is, or "
        f"{BRANCH}."
    )


def _passes(levels: Callable[[float], object], length: float) -> bool:
    try:
        levels(length)
    except ValueError:
        return False
    return True


def _check_heard(change: float, faint: float, bounds: np.ndarray) -> None:
    """GraftError where the host's norms would hear the circuit's lanes, so that its logits would be others."""
    if change > MOST_HEARD:
        raise GraftError(
            f"the circuit's lanes hold up to {at_most(bounds.max())}, and of {faint:g} of that the factor of a host's "
            f"norm could change by {at_most(change, 2)} of itself, where {MOST_HEARD:.2g} is allowed; scale the "
            f"circuit's numbers down, or {BRANCH}."
        )


def _largest_square(table: Tensor) -> float:
    """A bound on the squared length of every row."""
    return float(table.detach().double().square().sum(-1).max()) * (1 + 2.0**-40)


def _scale(family: HostFamily, host: Any, compiled: Compiled) -> float:
    """κ: by it the least lead of a letter, and the distance of letters from 0, is four times any host score."""
    domain = compiled.domains.of(compiled.source.output)
    least = min(float(domain.step) or 1.0, 1.0)
    loudest = _loudest_beside(family, host)
    scale = 2.0 ** np.ceil(np.log2(4 * max(loudest, 2.0**-20) * LOUDEST / least))
    if scale > _LARGEST_SCALE:
        raise GraftError(
            f"the host's logits can reach {loudest:.3g}, above which no letter can stand in float32; put "
            "several circuits into a host as one, by union or `construct compose`."
        )
    return scale


def _loudest_beside(family: HostFamily, host: Any) -> float:
    """What logits of the host can reach, where lanes of a circuit that was grafted into it before are loud only behind
    the last norm: they hold numbers of up to 2^24 there, times at most 1/√ε.
    """
    weight = family.last_norm(host)
    earlier = weight >= 1 / FAINTEST_SEEN
    rows = host.get_output_embeddings().weight.detach().double()
    heard = float(rows[:, earlier].abs().sum(-1).max()) * _LARGEST_LANE / family.epsilon(host.config) ** 0.5
    return loudest_score(rows[:, ~earlier] * weight[~earlier], host.config.hidden_size) + heard


# The circuit's layers -------------------------------------------------------------------------------


def _with_ballast(compiled: Compiled, levels: Sequence[float]) -> tuple[SelectiveBlock, ...]:
    """The blocks over the circuit's lanes and then the ballast lanes; the last one takes the ballast away."""
    count, lanes = len(levels), compiled.lanes.count
    coordinates = tuple(
        Coordinate(f"ballast[{i}]", text="a constant that makes the norms of the circuit's layers exact")
        for i in range(count)
    )
    blocks = [_more_lanes(block, coordinates) for block in compiled.blocks]
    away = np.zeros((1, lanes + count))
    away[0, lanes:] = -np.array(levels) / CONSTANT
    one = int(compiled.lanes.index[ONE][0])
    text = "a constant that takes the ballast away before the host's layers"
    level = np.array([CONSTANT])
    blocks[-1] = with_constant_channels(blocks[-1], one, level, sparse.csr_array(away), "no_ballast", text)
    return tuple(blocks)


def _more_lanes(block: SelectiveBlock, coordinates: tuple[Coordinate, ...]) -> SelectiveBlock:
    width = len(block.lanes) + len(coordinates)

    def wider(matrix: sparse.csr_array) -> sparse.csr_array:
        wide = matrix.copy()
        wide.resize(matrix.shape[0], width)
        return wide

    channels = block.channels
    return replace(
        block,
        features=replace(block.features, rows=wider(block.features.rows)),
        channels=replace(
            channels,
            delta_lanes=wider(channels.delta_lanes),
            gate=wider(channels.gate),
            out=wider(channels.out),
        ),
        lanes=block.lanes + coordinates,
    )


def _widened_taps(block: SelectiveBlock, d_conv: int) -> SelectiveBlock:
    """Taps by lag: older ones are 0."""
    taps = block.features.taps
    wide = np.pad(taps, ((0, 0), (0, d_conv - taps.shape[1])))
    return replace(block, features=replace(block.features, taps=wide))


def circuit_layers(plan: Plan, config: Any) -> list[dict[str, Tensor]]:
    """Tensors of the circuit's layers, by their names within a layer. config: the host's."""
    lanes = torch.from_numpy(plan.lanes)
    layers = []
    for mixer in plan.family.circuit_mixers(plan):
        mixer["out_proj.weight"][lanes] *= plan.faint
        norm = torch.full((plan.wide.d_model,), -plan.family.unit)
        norm[lanes] = plan.ballast.level / plan.faint
        layers.append(plan.family.circuit_layer(mixer, norm, config))
    return layers


# The whole model ------------------------------------------------------------------------------------


def tensors_of(plan: Plan, host: Any, ids: Mapping[str, int], vocab: int) -> dict[str, Tensor]:
    """The state dict of the direct sum. ids: the id of each letter; vocab: how many tokens there are in the end."""
    config, family = host.config, plan.family
    state = {name: tensor.detach() for name, tensor in host.state_dict().items()}
    dtype = host.get_input_embeddings().weight.dtype
    result = {
        family.embedding: _embedding(plan, host, ids, vocab),
        "lm_head.weight": _head(plan, host, ids, vocab),
        family.final_norm: family.host_norm(state[family.final_norm], plan.host, plan.wide),
    }
    result[family.final_norm][torch.from_numpy(plan.lanes)] = 1 / plan.faint
    layers = circuit_layers(plan, config)
    for i, layer in enumerate(layers):
        for name, tensor in layer.items():
            held = tensor.to(dtype)
            if not torch.equal(held.float(), tensor.float()):
                raise GraftError(f"the circuit's {name} has a weight that {dtype} does not hold exactly.")
            result[f"{family.layers}{i}.{name}"] = held
    for i in range(config.num_hidden_layers):
        prefix, place = f"{family.layers}{i}.", f"{family.layers}{len(layers) + i}."
        layer = {name.removeprefix(prefix): t for name, t in state.items() if name.startswith(prefix)}
        widened = family.widened_layer(layer, plan.host, plan.wide)
        result |= {f"{place}{name}": tensor for name, tensor in widened.items()}
    return {name: tensor.contiguous() for name, tensor in result.items()}


def _embedding(plan: Plan, host: Any, ids: Mapping[str, int], vocab: int) -> Tensor:
    """[host's row | faint lanes | ballast]; a token that is no letter has the guest's lanes."""
    own = host.get_input_embeddings().weight.detach()
    rows = torch.from_numpy(plan.compiled.lanes.embedding.toarray()) * plan.faint
    table = torch.zeros(vocab, plan.wide.d_model, dtype=torch.float64)
    table[: len(own), : plan.host.d_model] = own.double() * plan.family.scale(plan.host, plan.wide)
    lanes = slice(plan.host.d_model, plan.host.d_model + plan.compiled.lanes.count)
    letters = plan.compiled.source.token_alphabet
    table[:, lanes] = rows[letters.size - 1]  # the guest, which is the last
    for letter, place in ids.items():
        table[place, lanes] = rows[letters.index(letter)]
    count = len(plan.ballast.factors)
    table[:, -count:] = torch.tensor(plan.ballast.factors, dtype=torch.float64) * plan.ballast.level
    return _held(table, own.dtype, "embedding")


def _head(plan: Plan, host: Any, ids: Mapping[str, int], vocab: int) -> Tensor:
    own = host.get_output_embeddings().weight.detach()
    rows = torch.from_numpy(plan.compiled.head.toarray()) * plan.scale
    table = torch.zeros(vocab, plan.wide.d_model, dtype=torch.float64)
    table[: len(own), : plan.host.d_model] = own.double() / plan.family.scale(plan.host, plan.wide)
    lanes = slice(plan.host.d_model, plan.host.d_model + plan.compiled.lanes.count)
    for letter, place in ids.items():
        table[place, lanes] = rows[plan.compiled.source.token_alphabet.index(letter)]
    return _held(table, own.dtype, "head")


def _held(table: Tensor, dtype: torch.dtype, what: str) -> Tensor:
    held = table.to(dtype)
    if not torch.equal(held.double(), table):
        raise GraftError(f"the circuit's {what} has a weight that {str(dtype).removeprefix('torch.')} does not hold.")
    return held


def config_of(plan: Plan, host: Any, vocab: int) -> Any:
    """The configuration of the direct sum: the host's, wider."""
    old, wide = host.config, plan.wide
    told = old.to_dict() | {
        "vocab_size": vocab,
        "hidden_size": wide.d_model,
        "num_hidden_layers": len(plan.blocks) + old.num_hidden_layers,
        "tie_word_embeddings": False,
    }
    told |= plan.family.sizes_told(old, len(plan.blocks), plan.host, wide)
    return type(old).from_dict(told | plan.family.config(old, plan.host, wide))
