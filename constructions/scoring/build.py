"""Problems of three kinds from directories: a plain checkpoint, a disguised one with its key, a twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from compiler.artifact.errors import EditedError
from compiler.artifact.files import MANIFEST, WEIGHTS
from compiler.artifact.generate import transformers_model
from compiler.artifact.manifest import file_hash, is_disguised
from compiler.disguise.basis import channels_used, lane_basis
from compiler.disguise.directory import check_disguised, read_disguised
from compiler.disguise.key import Key
from compiler.disguise.spaces import SPACES
from compiler.targets import family_of
from compiler.targets.family import FINAL_NORM, HEAD, mixer_prefix, norm_name
from constructions.checkpoints.built import Built
from constructions.checkpoints.saved import rebuilt, same
from constructions.scoring.asked import inputs_of
from constructions.scoring.problem import Edges, Featurizer, Given, Problem, Scale, scales
from constructions.scoring.sites import Site, channels_of, read_all, read_by, stream_after
from constructions.scoring.truth import Truth
from constructions.scoring.twin import WIDTH

TRAIN, HELD = 128, 100  # inputs that a method sees, pairs that it is held to


def problem_of(directory: Path, key: Key | None = None, seed: int = 0) -> Problem:
    """The problem of a directory; ValueError for a disguised one without its key, whose truth nobody could know."""
    from constructions.scoring.twins_saved import is_twin

    if key is not None:
        check_disguised(directory)
    if is_twin(directory):
        return _of_twin(directory, seed)
    if not is_disguised(directory):
        return _of_weights(directory, same(directory)[0], "plain", None, seed)
    if key is None:
        raise ValueError(f"{directory} is disguised, and only its key says what is where: give it with --key FILE.")
    return _of_weights(directory, _disguised(directory, key), "disguised", key, seed)


def _disguised(directory: Path, key: Key) -> Built:
    """What a disguise computes, which `construct verify --key` finds it to: the steps of a key may change that.
    ValueError for a key of other weights; EditedError where something is wrong with the weights or the key.
    """
    from constructions.checkpoints.disguised import verify_disguised

    if file_hash(directory / WEIGHTS) != key.weights:
        raise ValueError(f"{directory}: its weights are not those of the key.")
    found = verify_disguised(directory, samples=HELD, key=key)
    if not found.good:
        told = found.complaints or ["its weights were run, and do not compute what its circuit does"]
        raise EditedError(f"{directory} is not scored, as construct verify --key finds: {told[0].rstrip('.')}.")
    return rebuilt(directory, read_disguised(directory)[0], MANIFEST)


def _of_weights(directory: Path, built: Built, kind: str, key: Key | None, seed: int) -> Problem:
    """Components are the channels of the blocks; variables stand on lanes, which the key may have mixed."""
    if built.over_numbers or built.model is None:
        raise ValueError(f"{directory} is no language model, and methods are held to one.")
    truth, family = Truth(built.compiled, inputs_of(built)), family_of(built.model.config["model_type"])
    model, told = transformers_model(directory, built.compiled.dtype), family.told_sizes(built.model.config)
    width, inner, layers = told["d_model"], told["d_inner"], range(told["layers"])
    basis = np.eye(width) if key is None else lane_basis(key.steps, width)
    back = np.linalg.inv(basis)
    places = {name: (back[truth.lanes(name)], basis[:, truth.lanes(name)]) for name in truth.variables}
    used = []
    for layer in layers:
        plain = (built.model.tensors[family.output_name(layer)] != 0).any(dim=0).numpy()
        used.append(plain.astype(int) if key is None else channels_used(key.steps, layer, plain).astype(int))
    sites = {name: stream_after(family, truth.after(name), width) for name in truth.variables}
    nodes = tuple(channels_of(family, layer, inner) for layer in layers)
    seen = read_all(model, nodes, torch.from_numpy(truth.draw(TRAIN, 4 * seed)))
    for one, values in zip(used, seen, strict=True):
        constant = (values.flatten(0, 1) == values[0, 0]).all(dim=0).numpy()
        one[constant & (one == 1)] = -1  # what never varies cannot be told from a bias
    written = [model.get_submodule(site.path).weight.detach() for site in nodes]
    edges, edges_used = _edges(built, key, written, used)
    return _problem(directory.name, kind, truth, model, nodes, used, sites, places, seed, edges, edges_used)


def _edges(
    built: Built, key: Key | None, written: list[torch.Tensor], used: list[np.ndarray]
) -> tuple[tuple[Edges, ...], list[np.ndarray]]:
    """From each block's channels to each later block and the head. An edge is used if its reader has a weight on a lane
    that the channel writes in the plain model. With one block edges say what nodes do, so there are none. written: what
    the channels of each block add to the stream, as the model that is scored has it.
    """
    tensors, layers = built.model.tensors, len(used)
    if built.model.config["model_type"] not in SPACES or layers < 2:
        return (), []
    readers = [(norm_name(j), tensors[f"{mixer_prefix(j)}in_proj.weight"]) for j in range(layers)]
    readers.append((FINAL_NORM, tensors[HEAD]))
    edges, found = [], []
    for layer in range(layers):
        plainly = tensors[f"{mixer_prefix(layer)}out_proj.weight"] != 0
        for norm, matrix in readers[layer + 1 :]:
            read = (matrix != 0).any(dim=0) & (tensors[norm] != 0)
            plain = (plainly & read[:, None]).any(dim=0).numpy()
            one = (plain if key is None else channels_used(key.steps, layer, plain)).astype(int)
            one[used[layer] < 0] = -1
            edges.append(Edges(layer, read_by(norm, len(written[layer])), written[layer]))
            found.append(one)
    return tuple(edges), found


def _of_twin(directory: Path, seed: int) -> Problem:
    """Components are the lanes behind block 1: those of variables are used, the free ones are not. Block 2 reads the
    variables, and the head does not, where the twin was trained to that."""
    from constructions.scoring.twins_saved import check_lanes, read_twin

    twin, manifest = read_twin(directory)
    built, one = rebuilt(directory, manifest, MANIFEST), np.eye(WIDTH)
    truth = Truth(built.compiled, inputs_of(built))
    check_lanes(twin, truth)
    used = np.full(WIDTH, -1)
    used[twin.free] = 0
    used[[i for lanes in twin.lanes.values() for i in lanes]] = 1
    site = stream_after(family_of("mamba"), 1, WIDTH)
    places = {name: (one[lanes], one[:, lanes]) for name, lanes in twin.lanes.items()}
    sites = dict.fromkeys(twin.lanes, site)
    edges, edges_used = (), []
    if twin.faithfulness is not None and twin.faithfulness.through:
        readers = read_by(norm_name(1), WIDTH), read_by(FINAL_NORM, WIDTH)
        edges = tuple(Edges(0, reader, torch.eye(WIDTH)) for reader in readers)
        edges_used = [used, np.where(used > 0, 0, used)]
    return _problem(directory.name, "twin", truth, twin.model, (site,), [used], sites, places, seed, edges, edges_used)


def _problem(
    name: str, kind: str, truth: Truth, model: Any, nodes: tuple[Site, ...], used: list[np.ndarray],
    sites: Mapping[str, Site], places: Mapping[str, tuple[np.ndarray, np.ndarray]], seed: int,
    edges: tuple[Edges, ...] = (), edges_used: Sequence[np.ndarray] = (),
) -> Problem:  # fmt: skip
    """places: for each variable how it is read from its site, and how it is written there."""
    ids, other, held, source = (
        truth.draw(n, 4 * seed + k, held=k > 1) for k, n in enumerate((TRAIN, TRAIN, HELD, HELD))
    )
    tokens = torch.from_numpy(ids)
    scale = scales(model, sites, tokens)
    labels = {v: torch.from_numpy(truth.values(v, ids)) for v in sites}
    given = Given(
        model=model,
        ids=tokens,
        answers=torch.from_numpy(truth.answers(ids)),
        nodes=nodes,
        site=sites,
        scale=scale,
        labels=labels,
        pairs={v: truth.pairs(v, ids, other) for v in sites},
        size={v: max(len(places[v][0]), labels[v].shape[-1]) for v in sites},
        seed=seed,
        edges=edges,
    )
    return Problem(
        name=name,
        kind=kind,
        given=given,
        used=used,
        held={v: truth.pairs(v, held, source) for v in sites},
        held_labels={v: torch.from_numpy(truth.values(v, held)) for v in sites},
        held_answers=truth.answers(held),
        oracle={v: _scaled(*places[v], scale[v]) for v in sites},
        edges_used=list(edges_used),
        equal={v: tuple(one.name for one in truth.variables[v]) for v in sites},
        left_out=truth.left_out,
        asked=truth.inputs.says,
    )


def _scaled(read: np.ndarray, write: np.ndarray, scale: Scale) -> Featurizer:
    """A featurizer of raw coordinates as one of scaled ones."""
    return Featurizer(torch.from_numpy(read) * scale.spread, torch.from_numpy(write) / scale.spread[:, None])
