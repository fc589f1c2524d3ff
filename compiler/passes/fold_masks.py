"""Part of represent: a condition folded into the ramps of what it masks, which saves a block.

A flag that is made of ramps, D = c₀ + Σ c_i·relu(z_i), stands on lanes a block after z does; D & w is then one more
rectifier, a block later still. Let S = Σ w_j − n over n conditions w_j, an integer of at most 0, and 0 where all hold.
With M ≥ z_i for all i,

    D & w = c₀·relu(1 + S) + Σ c_i·relu(z_i + M·S),

for z_i + M·S is z_i where all conditions hold, and at most z_i − M ≤ 0 elsewhere. A number a ≥ 0 that is no ramp is its
own: a = relu(a). So the conjunction costs no block of its own, where the conditions stand on lanes as early as z.

Each lane then takes as many ramps as D has, and not one: the driver folds only where a circuit takes fewer blocks.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import ONE, AffineForm
from compiler.analysis.depths import Depths
from compiler.analysis.domains import Domains, DomainsDraft
from compiler.context import Context
from compiler.language import operations as ops
from compiler.language.stream import Stream, constant
from compiler.lattice.domain import power_of_two
from compiler.lowering.conditions import need_flags

MOST_RAMPS = 4  # for each lane, on average: a comparison for equality has four
_EDGES = 4  # ramps beyond: a one-hot of n alternatives has n + 2


class MaskFolding:
    """Conjunctions as masked ramps.

    any: whether one has been folded.
    """

    def __init__(self, context: Context, domains: DomainsDraft):
        self.any = False
        self.context = context
        self.domains = domains
        self.depths = Depths()

    def folded(self, parts: tuple[Stream, ...], conjunction: Stream) -> Stream | None:
        """An equal stream that is ready a block earlier; None where there is none.

        parts: the flags, each one lane or as many as the conjunction has.
        """
        need_flags(self.domains, *parts)
        depth = [self.depths.of(part) for part in parts]
        if depth.count(max(depth)) > 1:
            return None
        masked = parts[depth.index(max(depth))]
        form = self.context.form(masked)
        if not self._ramps(form, max(depth), conjunction.width):
            return None
        conditions = [part for part in parts if part is not masked]
        result = _masked(self.domains, form, conditions, conjunction.width).retyped(conjunction.type)
        self.domains.meet(result, self.domains.of(conjunction))
        self.any = True
        return result

    def _ramps(self, form: AffineForm, depth: int, width: int) -> bool:
        """Whether a form is a sum of present ramps and of non-negative numbers that are ready before them."""
        atoms = [atom for atom, _ in form if atom is not ONE]
        return (
            all(lag == 0 for _, lag in form)
            and all(a.operation.rectifies or self.depths.of(a) < depth for a in atoms)
            and all(self.domains.of(a).lo >= 0 for a in atoms)
            and sum(m.nnz if width > 1 else m.shape[1] for (a, _), m in form.items() if a is not ONE)
            <= MOST_RAMPS * width + _EDGES
        )


def _masked(domains: Domains, form: AffineForm, conditions: list[Stream], lanes: int) -> Stream:
    """The form, on so many lanes, where all the conditions hold, and 0 elsewhere."""
    missing = sum(conditions[1:], start=conditions[0]) - len(conditions)
    terms = []
    for (atom, _), part in form.items():
        matrix = part if part.shape[0] == lanes else ops.exact_matrix(np.ones((lanes, 1)) @ part)
        if atom is ONE:
            holds = conditions[0] if len(conditions) == 1 else (1 + missing).relu()
            terms.append((matrix if holds.width == 1 else sparse.diags_array(matrix.toarray()[:, 0])) @ holds)
        else:
            terms.append(_masked_term(atom, matrix, power_of_two(max(domains.of(atom).hi, Fraction(1))) * missing))
    return sum(terms[1:], start=terms[0]) if terms else constant(0, lanes)


def _masked_term(atom: Stream, matrix: sparse.csr_array, down: Stream) -> Stream:
    """matrix · relu(z + down) for atom = relu(z), where `down` is one number for all lanes or one for each."""
    ramp = atom.inputs[0] if atom.operation.rectifies else atom
    if down.width == 1:
        used = np.flatnonzero(np.diff(sparse.csc_array(matrix).indptr))
        return ops.exact_matrix(matrix[:, used]) @ (ramp[used] + np.ones((len(used), 1)) @ down).relu()
    coo = matrix.tocoo()
    add = sparse.csr_array((coo.data, (coo.row, range(coo.nnz))), shape=(matrix.shape[0], coo.nnz))
    return add @ (ramp[coo.col] + down[coo.row]).relu()
