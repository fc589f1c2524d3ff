"""No method spoils the model of the next one: each has a copy, and what it sets for the whole process is set back."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch

from constructions.scoring.problem import Found, Given


def run_apart(name: str, method: Callable[[Given], Found], given: Given) -> Found:
    """What a method finds on a copy of its own. ValueError, by name, where the untouched model answers otherwise
    afterwards, as it does under a hook on all modules or a function of a library that was replaced.
    """
    before = _logits(given)
    with settings_kept(given.seed):
        found = method(copy.deepcopy(given))
    try:
        same = torch.equal(before, _logits(given))
    except Exception:  # what was replaced may fail in any way
        same = False
    if not same:
        raise ValueError(
            f"--method {name} changed what every model in this process computes (by a hook on all modules, or in a "
            "library's own code), so nothing behind it could be scored; it must change no more than given.model."
        )
    return found


@torch.no_grad()
def _logits(given: Given) -> torch.Tensor:
    return given.model(given.ids, use_cache=False).logits


@contextmanager
def settings_kept(seed: int) -> Iterator[None]:
    """Generators begin at `seed`, so that no order of methods matters; behind it all is as it was before."""
    drawn = torch.get_rng_state(), np.random.get_state(), random.getstate()
    grad, dtype, device = torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_default_device()
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    try:
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)
        random.seed(seed)
        yield
    finally:
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        if torch.get_default_device() != device:
            torch.set_default_device(device)
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(strict)
        torch.set_rng_state(drawn[0])
        np.random.set_state(drawn[1])
        random.setstate(drawn[2])
