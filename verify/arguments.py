"""Argument checks that answer with one sentence: the argument, its value, the limit, and the nearest value that
works.
"""


def at_least(name: str, value: float, least: float, because: str) -> None:
    """Raise ValueError unless value >= least; `because` says where the limit comes from."""
    if not value >= least:
        raise ValueError(
            f"{name} = {value} is too small, because {because}; the smallest {name} that works is {least}."
        )


def at_most(name: str, value: float, most: float, because: str) -> None:
    """Raise ValueError unless value <= most; `because` says where the limit comes from."""
    if not value <= most:
        raise ValueError(f"{name} = {value} is too large, because {because}; the largest {name} that works is {most}.")


def one_of(name: str, value: str, options: tuple[str, ...]) -> None:
    """Raise ValueError unless value is one of the options."""
    if value not in options:
        raise ValueError(f"{name} = {value!r} is unknown; it must be one of {', '.join(map(repr, options))}.")
