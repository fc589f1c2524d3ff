"""What depends on nothing but the numbers of domains is found once for equal ones: most streams are flags alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import copy
from typing import Any, TypeVar

_Found = TypeVar("_Found")


class Once:
    """What was found, by all that it depends on."""

    def __init__(self) -> None:
        self._found: dict[tuple, Any] = {}

    def __call__(self, find: Callable[[], _Found], *key: Hashable) -> _Found:
        """What `find` gives, which the key decides; a copy each time, for domains are told apart by identity."""
        if key not in self._found:
            self._found[key] = find()
        return copy(self._found[key])
