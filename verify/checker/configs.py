"""Entries of config.json that every class of model is held to in the same way; Rejected says which is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from verify.checker.budget import MOST_LAG
from verify.checker.formats import Rejected

Kinds = Mapping[str, tuple[type, ...]]
LARGEST_SIZE = 1 << 24
LEAST_EPSILON = 2.0**-126  # below it float32 has 0, or what some backends read as 0: a norm of zeros is then 0·∞
# Keys that change nothing in any class, and the types that transformers gives them: with others it opens no model.
HARMLESS: Kinds = {
    **dict.fromkeys(("bos_token_id", "pad_token_id"), (int, type(None))),
    "eos_token_id": (int, list, type(None)),
    "transformers_version": (str,),
    "use_cache": (bool,),
}


def same(one: object, other: object) -> bool:
    """Whether two JSON values are equal, types included: to Python 1, 1.0 and true are, and not to every reader."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(each, other[key]) for key, each in one.items())  # type: ignore
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))  # type: ignore
    return one == other


def check_sizes(config: dict, sizes: Iterable[str]) -> None:
    """Each is an integer from 1 on."""
    for key in sizes:
        most = MOST_LAG if "conv" in key else LARGEST_SIZE
        if type(config.get(key)) is not int or not 1 <= config[key] <= most:
            raise Rejected(f"the config has {key} = {config.get(key)!r:.60}, expected an integer from 1 to {most}")


def check_entries(config: dict, expected: Mapping[str, object], epsilon: str, harmless: Kinds, known: set[str]) -> None:
    """What is expected is there, what is harmless has its type, and nothing stands beside these and what is `known`.

    epsilon: the name of that of the norms.
    """
    for key, value in expected.items():
        if key not in config or not same(config[key], value):
            raise Rejected(f"the config has {key} = {config.get(key)!r:.60}, expected {value!r:.200}")
    if type(config.get(epsilon)) is not float or not LEAST_EPSILON <= config[epsilon] < 1:
        raise Rejected(
            f"the config has {epsilon} = {config.get(epsilon)!r:.60}, expected a number from 2^-126 on, below 1"
        )
    for key, kinds in harmless.items():
        if key in config and type(config[key]) not in kinds:
            names = " or ".join(kind.__name__ for kind in kinds)
            raise Rejected(f"the config has {key} = {config[key]!r:.60}, expected a value of type {names}")
        if isinstance(config.get(key), list) and any(type(part) is not int for part in config[key]):
            raise Rejected(f"the config has {key} = {config[key]!r:.60}, expected integers in the list")
    unknown = sorted(set(config) - {*expected, *harmless, *known, epsilon, "model_type"})
    if unknown:
        raise Rejected(f"the config has an entry {unknown[0]!r:.60} that the checker does not know")
