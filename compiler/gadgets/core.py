"""The gadgets of the language's own operations.

Importing this registers them, and fails where a core operation has none.
"""

from compiler.gadgets.counter import Counter
from compiler.gadgets.fading import FadingMemory, FadingSum, SelectiveSum
from compiler.gadgets.gadget import operations_with_gadgets, register
from compiler.gadgets.gated_memory import GatedMemory
from compiler.gadgets.gated_state import GatedState
from compiler.gadgets.inner_product import InnerProduct
from compiler.gadgets.latch import Latch
from compiler.gadgets.memory import OuterProductMemory
from compiler.gadgets.product import Product
from compiler.gadgets.rectifier import Rectifier
from compiler.gadgets.reflection import Reflections
from compiler.gadgets.running_sum import RunningSum
from compiler.gadgets.scaled_sum import ScaledSum
from compiler.gadgets.silu_product import SiluProduct
from compiler.language import operations as ops

for _operation, _gadget in (
    (ops.Relu, Rectifier()),
    (ops.Half, Rectifier()),
    (ops.Multiply, Product()),
    (ops.SiluProduct, SiluProduct()),
    (ops.Dot, InnerProduct()),
    (ops.Cumsum, RunningSum()),
    (ops.Latch, Latch()),
    (ops.SumWhere, Latch()),
    (ops.GateSum, GatedState()),
    (ops.MemoryRead, OuterProductMemory()),
    (ops.Moved, Reflections()),
    (ops.GatedRead, GatedMemory()),
    (ops.FadingMemory, FadingMemory()),
    (ops.FadingSum, FadingSum()),
    (ops.SelectiveSum, SelectiveSum()),
    (ops.ScaledSum, ScaledSum()),
    (ops.Count, Counter()),
):
    register(_operation, _gadget)


def check_complete() -> None:
    """Raise TypeError where an operation says that a block computes it and no gadget does."""
    missing = [o.__name__ for o in _all_operations() if o.core and o not in operations_with_gadgets()]
    if missing:
        raise TypeError(f"the core operations {', '.join(missing)} have no gadget; register one in compiler.gadgets")


def _all_operations() -> list[type[ops.Operation]]:
    found, pending = [], [ops.Operation]
    while pending:
        operation = pending.pop()
        found.append(operation)
        pending += operation.__subclasses__()
    return found


check_complete()
