"""Where a variable stands: principal components, linear probes, distributed alignment search, sparse autoencoders."""

from __future__ import annotations

import numpy as np
import torch

from constructions.scoring.problem import Featurizer, Found, Given
from verify.tasks.task import IGNORED

DAS_STEPS, DAS_ROWS, DAS_RATE = 30, 24, 0.1
SAE_FEATURES, SAE_STEPS, SAE_SPARSITY = 64, 300, 0.05


def _each(given: Given, one) -> Found:
    return Found(None, {name: one(given, name) for name in given.site})


def principal_components(given: Given) -> Found:
    """The directions of greatest variance, as many as the variable has numbers (scikit-learn)."""
    from sklearn.decomposition import PCA

    def one(given: Given, name: str) -> Featurizer:
        flat = given.features(name).flatten(0, 1).numpy()
        most = min(given.labels[name].shape[-1], flat.shape[1])
        return Featurizer.onto(torch.from_numpy(PCA(most, random_state=given.seed).fit(flat).components_.T.copy()))

    return _each(given, one)


def linear_probes(given: Given) -> Found:
    """The directions of a ridge regression on the labels (scikit-learn)."""
    from sklearn.linear_model import Ridge

    def one(given: Given, name: str) -> Featurizer:
        flat, labels = given.features(name).flatten(0, 1).numpy(), given.labels[name].flatten(0, 1).numpy()
        weights = np.atleast_2d(Ridge(alpha=1e-3).fit(flat, labels).coef_)
        return Featurizer.onto(torch.from_numpy(weights.T.copy()))

    return _each(given, one)


def alignment_search(given: Given) -> Found:
    """DAS: a rotation trained so that exchanging its first directions does to answers what the circuit says
    (pyvene)."""
    from pyvene import LowRankRotatedSpaceIntervention

    def one(given: Given, name: str) -> Featurizer:
        torch.manual_seed(given.seed)
        site, scale, pairs = given.site[name], given.scale[name], given.pairs[name]
        rank = given.labels[name].shape[-1]
        rotation = LowRankRotatedSpaceIntervention(embed_dim=site.width, low_rank_dimension=rank)
        adam = torch.optim.Adam(rotation.parameters(), lr=DAS_RATE)
        rng = np.random.default_rng(given.seed)
        other = scale.of_values(site.read(given.model, torch.from_numpy(pairs.source))).float()
        for _ in range(DAS_STEPS):
            rows = torch.from_numpy(rng.choice(len(pairs.base), DAS_ROWS, replace=False))

            def change(values: torch.Tensor, rows: torch.Tensor = rows) -> torch.Tensor:
                base = scale.of_values(values).float()
                return values + ((rotation(base, other[rows]) - base) * scale.spread).to(values.dtype)

            with site.changed(given.model, change):
                logits = given.model(torch.from_numpy(pairs.base)[rows], use_cache=False).logits.float()
            wanted = torch.from_numpy(pairs.answers)[rows]
            logits = logits / logits.detach().abs().amax().clamp(min=10.0) * 10.0
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=IGNORED)
            adam.zero_grad()
            loss.backward()
            adam.step()
        return Featurizer.onto(rotation.rotate_layer.weight.detach())

    return _each(given, one)


def sparse_autoencoder(given: Given) -> Found:
    """The decoder directions of those features that go with the labels best, one for each number of the variable."""

    def one(given: Given, name: str) -> Featurizer:
        torch.manual_seed(given.seed)
        flat = given.features(name).flatten(0, 1).float()
        width = flat.shape[1]
        encode, decode = torch.nn.Linear(width, SAE_FEATURES), torch.nn.Linear(SAE_FEATURES, width)
        with torch.no_grad():
            decode.weight.copy_(encode.weight.T)
        adam = torch.optim.Adam([*encode.parameters(), *decode.parameters()], lr=3e-3)
        for _ in range(SAE_STEPS):
            hidden = torch.relu(encode(flat))
            loss = (decode(hidden) - flat).pow(2).sum(-1).mean() + SAE_SPARSITY * hidden.sum(-1).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
        with torch.no_grad():
            hidden = torch.relu(encode(flat)).double()
            labels = given.labels[name].flatten(0, 1).double()
            centred = [(m - m.mean(dim=0)) / m.std(dim=0).clamp(min=1e-9) for m in (labels, hidden)]
            best = (centred[0].T @ centred[1]).abs().argmax(dim=1)
            return Featurizer.onto(decode.weight[:, best])

    return _each(given, one)
