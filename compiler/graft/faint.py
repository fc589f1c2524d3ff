"""How faint the circuit's lanes stand in the stream: so that their squares are 0 in every format's arithmetic.

A lane of at most b, times FAINT <= 2^-75/b, has a square of at most 2^-150. That is half of the least positive float32:
the square is rounded to 0, with a fused multiply-add it leaves every sum as it is, and a unit that flushes small
numbers gives 0 as well. So the host's mean squares have the circuit's lanes as zeros, whatever the host's stream and
whatever the order of addition. What is read of the lanes must stay above the least normal number, 2^-126: behind the
norms of the circuit's own layers they are divided by the ballast K, behind the host's last one by up to LOUDEST.

Where no level does both, the faintest that can be read is taken. A norm of the host then adds the squares of the lanes,
q = heard(...), to D times its mean square, which is at least D·ε. So over the reals its factor shrinks by at most
1 − 1/√(1 + q/(Dε)) of itself, for every stream; a plan in which that is more than MOST_HEARD is refused.
"""

from __future__ import annotations

import numpy as np

from compiler.compiled import Compiled
from compiler.exactness.sums import finest_lane
from compiler.graft.errors import GraftError

LOUDEST = 2.0**20  # root mean square of the host's stream, up to which the circuit's scores are right
FAINTEST_SEEN = 2.0**-40  # no lane stands louder, so a weight of a norm that makes one audible is at least 2^40
MOST_HEARD = 2.0**-24  # of a norm's factor: half of what one rounding may change
_VANISHES = 2.0**-75
_LEAST_READ = 2.0**-110  # of a lane's step behind a norm: 2^16 of room for what a sum's terms are finer than the lane
_LARGEST_WEIGHT = 2.0**120


def faint_level(compiled: Compiled, bounds: np.ndarray, ballast: float) -> float:
    """The power of two for lanes within these bounds beside a ballast of this level: one at which their squares vanish,
    or else the faintest that can be read. GraftError where a lane could not be read at FAINTEST_SEEN either.
    """
    level = _VANISHES / _power_of_two(max(float(bounds.max()), 1.0))
    stream, unit = finest_lane(compiled.lanes, compiled.domains, reals=False)
    read = float(unit) / max(ballast, LOUDEST)
    faintest = _power_of_two(max(_LEAST_READ / read, ballast / _LARGEST_WEIGHT))
    if faintest > FAINTEST_SEEN:
        raise GraftError(
            f"{stream.label} holds multiples of {float(unit):g}, and behind the norms of a graft only those of "
            f"{_LEAST_READ / FAINTEST_SEEN * max(ballast, LOUDEST):g} can be read; scale it up"
        )
    return max(level, faintest)


def _power_of_two(least: float) -> float:
    """The least one that is at least so much."""
    return float(2.0 ** np.ceil(np.log2(least)))


def heard(level: float, bounds: np.ndarray) -> float:
    """What the lanes add to a sum of squares at most; 0 where the square of each vanishes."""
    lanes = level * bounds
    return 0.0 if (lanes <= _VANISHES).all() else float(np.square(lanes).sum()) * (1 + 2.0**-40)


def norm_shrinks(heard: float, width: int, epsilon: float) -> float:
    """What the factor of a norm over `width` places loses at most, of itself, over the reals."""
    share = heard / (width * epsilon)
    root = (1 + share) ** 0.5
    return share / (root * (1 + root)) * (1 + 2.0**-40)
