"""The operations of the language: for each, its typing rules and its one meaning.

`evaluate` is the definition that every lowering is tested against. It maps arrays of
shape (batch, time, width) to an array of that kind, and uses only additions, products,
comparisons and selections, so that the same code is exact on Python integers and
Fractions (object arrays) and on float64 within the integer range of float64.

`problems` gives the reasons why an operation is ill-typed or not causal; the check
pass gathers them over the whole circuit.
"""

from compiler.language.operations.base import Operation
from compiler.language.operations.digits import GatedRead, TwoDigitRead
from compiler.language.operations.division import FloorDivide, Modulo
from compiler.language.operations.exact import (
    RANGE,
    Array,
    apply,
    copies,
    exact_matrix,
    exact_number,
    is_dyadic,
    is_summable,
    scaled_identity,
    with_width,
)
from compiler.language.operations.fading import FadingMemory, FadingSum, SelectiveSum
from compiler.language.operations.flags import And, Compare, Not, Or, SameSymbol, Select
from compiler.language.operations.linear import Emit, Linear, Lti, Shift
from compiler.language.operations.memories import GateSum, Latch, MemoryRead, SumWhere
from compiler.language.operations.permutations import Moved, Permute
from compiler.language.operations.products import Dot, Multiply, SiluProduct
from compiler.language.operations.rectifiers import Clip, Half, Max, Min, Relu, Settled
from compiler.language.operations.rules import Decide, rule_columns
from compiler.language.operations.sources import Constant, Embed, Numbers, Position
from compiler.language.operations.sums import Count, Cumsum, RunningMax, ScaledSum
from compiler.language.operations.tables import Decode, Lookup, OneHotOf
from compiler.language.operations.traits import LaneWise, Sees, Source
from compiler.language.operations.wording import picked

__all__ = [
    "RANGE",
    "And",
    "Array",
    "Clip",
    "Compare",
    "Constant",
    "Count",
    "Cumsum",
    "Decide",
    "Decode",
    "Dot",
    "Embed",
    "Emit",
    "FloorDivide",
    "GateSum",
    "GatedRead",
    "Half",
    "Latch",
    "LaneWise",
    "Linear",
    "Lookup",
    "Lti",
    "Max",
    "MemoryRead",
    "Min",
    "Moved",
    "Modulo",
    "Multiply",
    "Not",
    "Numbers",
    "OneHotOf",
    "Operation",
    "Or",
    "Permute",
    "Position",
    "Relu",
    "RunningMax",
    "SameSymbol",
    "FadingMemory",
    "FadingSum",
    "ScaledSum",
    "Sees",
    "Select",
    "SelectiveSum",
    "Settled",
    "SiluProduct",
    "Source",
    "Shift",
    "SumWhere",
    "TwoDigitRead",
    "apply",
    "copies",
    "exact_matrix",
    "exact_number",
    "is_dyadic",
    "is_summable",
    "picked",
    "rule_columns",
    "scaled_identity",
    "with_width",
]
