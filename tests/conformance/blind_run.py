"""What the conformance cases say of kernels by one who had seen none: python -m tests.conformance.blind_run COUNT FIRST

The first 21 kernels are wrong and the others right; each is run on every case that is not crossed and, the right ones,
on a sample of the crossed ones; a fault that no such case shows is run on the crossed case that does.
"""

from __future__ import annotations

import json
import sys

from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.judge import judged
from conformance.kernel.kernel import Kernel
from conformance.kernel.signature import kernel
from tests.conformance.blind import FAULTS
from tests.conformance.test_blind import RIGHT, case_named, of_name, some_cases

KERNELS = [*FAULTS, *(each for right in RIGHT.values() for each in right)]


def found_by(fault) -> str | None:
    """The first case that calls a fault wrong, if there is one."""
    op, named, _ = FAULTS[fault]
    wrong = Kernel(fault.__name__, op, lambda **given: fault(FUNCTIONS[op], given), ours(op).accepts)
    tried = [*([case_named(op, named)] if named else []), *of_name(op).values()]
    return next((case.name for case in tried if judged(wrong, case).status == "failed"), None)


def called_wrong(each) -> str | None:
    """The first case that calls a right kernel wrong, if there is one."""
    op = next(op for op, right in RIGHT.items() if each in right)
    right = kernel(each)
    return next((case.name for case in some_cases(op) if judged(right, case).status.startswith("failed")), None)


def main(count: int, first: int) -> int:
    result: dict = {"wrong": {}, "right": {}, "failures": []}
    for each in KERNELS[first : first + count]:
        name = each.__name__.replace("_", " ")
        if each in FAULTS:
            result["wrong"][name] = found_by(each)
            result["failures"] += [] if result["wrong"][name] else [f"{name}: no case shows it"]
        else:
            result["right"][name] = called_wrong(each)
            result["failures"] += [f"{name}: it is right, and {result['right'][name]} says that it is wrong"] * bool(
                result["right"][name]
            )
    print(json.dumps(result, ensure_ascii=False))
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:3])))
