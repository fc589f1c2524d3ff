"""What a kernel takes by ** is asked of it: each name is given to it with what stands for nothing.

One that hands all of it on raises TypeError for what the function behind it has no argument for. One that takes any
name at all says nothing by that: then its ** is not looked into, and only options of which nothing is asked, such as
`norm_before_gate=False`, go there, in case it has a default of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from conformance.asked import usual_with_options
from conformance.cases import cases
from conformance.cases.factors import DTYPES
from conformance.cases.fitted import ordinary_of, plain, usual
from conformance.demands import small_cases
from conformance.kernel.arguments import ABSENT, names_of
from conformance.kernel.kernel import Kernel
from conformance.kernel.signature import with_absent
from conformance.loader import Case
from conformance.together import taken

_WITH_OPTIONS = 8  # usual sizes at which options are tried
_NONSENSE = "no_argument_of_any_kernel"
_UNEXPECTED = re.compile(r"(?:unexpected keyword|multiple values for(?: keyword)?) argument '(\w+)'")


def looked_into(kernel: Kernel) -> Kernel:
    """With the names that it takes by ** among those that it accepts; as it is where it runs no case."""
    if kernel.keywords != "unknown":
        return kernel
    for case in _candidates(kernel):
        taken = _taken(kernel, case)
        if taken is not None:
            if _NONSENSE in taken:
                return replace(kernel, keywords="any")
            needed = {name for name in taken if not _runs_without(kernel, taken, case, name)}
            call = with_absent(kernel.call, {name: ABSENT[name] for name in needed & ABSENT.keys()})
            accepts = kernel.accepts | taken
            return replace(kernel, call=call, accepts=accepts, keywords="none", unseen=taken - needed)
    return kernel


def _runs_without(kernel: Kernel, names: frozenset[str], case: Case, name: str) -> bool:
    """Whether it runs with all of these names but one."""
    try:
        _with(kernel, {*names}, case, without=name).run(case)
    except Exception:  # whatever a kernel of others raises: the name is needed
        return False
    return True


def _candidates(kernel: Kernel) -> Iterator[Case]:
    """Basic cases, then what else a kernel may run: other dtypes, other sizes, and what it may demand."""
    for op in kernel.operations():
        yield from cases(op)
        whole = replace(kernel, accepts=kernel.accepts | names_of(op), keywords="none")
        yield from small_cases(whole, op)
        yield from (plain(op, size, dtype=dtype) for size, dtype in product(usual(op, kernel.is_step), DTYPES))
        for size, levels in usual_with_options(kernel, op, taken(whole, op), _WITH_OPTIONS):
            yield ordinary_of(op, size, levels)[0]


def _taken(kernel: Kernel, case: Case) -> frozenset[str] | None:
    """The names that it takes beside its own, the nonsense among them where it takes it; None where it does not run."""
    names = {*names_of(kernel.op), _NONSENSE} - kernel.accepts
    while True:
        try:
            _with(kernel, names, case).run(case)
        except TypeError as error:
            found = _UNEXPECTED.search(str(error))
            if not found or found[1] not in names:
                return _each_alone(kernel, case, names)
            names.remove(found[1])
        except Exception:  # likewise: it does not run this case
            return None
        else:
            return frozenset(names)


def _each_alone(kernel: Kernel, case: Case, names: set[str]) -> frozenset[str] | None:
    """The names that raise no TypeError one by one, in whatever words, nor together; None where it does not run."""

    def runs(some: set[str]) -> bool:
        try:
            _with(kernel, some, case).run(case)
        except TypeError:
            return False
        return True

    try:
        taken = {name for name in names if runs({name})} if runs(set()) else set()
        return frozenset(taken) if runs(taken) else None
    except Exception:  # likewise
        return None


def _with(kernel: Kernel, names: set[str], case: Case, without: str = "") -> Kernel:
    """Given these names in every call: what a case has, or what stands for nothing; without: one that is not given."""
    nothing: dict[str, Any] = {name: ABSENT.get(name) for name in names & {*ABSENT, _NONSENSE}}
    if "dt_limit" in names:
        nothing["dt_limit"] = (0.0, float("inf"))

    def call(*places: Any, **given: Any) -> Any:
        return kernel.call(*places, **{name: m for name, m in {**nothing, **given}.items() if name != without})

    return replace(kernel, call=call, accepts=kernel.accepts | names, keywords="none")
