"""How faint the circuit's lanes stand in the stream: so that their squares are 0 in every format's arithmetic.

A lane of at most b, times FAINT <= 2^-75/b, has a square of at most 2^-150. That is half of the least positive float32:
the square is rounded to 0, with a fused multiply-add it leaves every sum as it is, and a unit that flushes small
numbers gives 0 as well. So the host's mean squares have the circuit's lanes as zeros, whatever the host's stream and
whatever the order of addition. What is read of the lanes must stay above the least normal number, 2^-126: behind the
norms of the circuit's own layers they are divided by the ballast K, behind the host's last one by up to LOUDEST.
"""

from __future__ import annotations

import numpy as np

from compiler.compiled import Compiled
from compiler.exactness.sums import finest_lane
from compiler.graft.errors import GraftError

LOUDEST = 2.0**20  # root mean square of the host's stream, up to which the circuit's scores are right
FAINTEST_SEEN = 2.0**-40  # where squares cannot vanish: they change a mean square by less than 2^-25, if it is not tiny
_VANISHES = 2.0**-75
_LEAST_READ = 2.0**-110  # of a lane's step behind a norm: 2^16 of room for what a sum's terms are finer than the lane
_LARGEST_WEIGHT = 2.0**120


def faint_level(compiled: Compiled, bounds: np.ndarray, ballast: float) -> float:
    """The power of two for lanes within these bounds beside a ballast of this level; FAINTEST_SEEN where no level both
    vanishes and can be read. GraftError where a lane could not be read at that one either.
    """
    level = _VANISHES / 2.0 ** np.ceil(np.log2(max(float(bounds.max()), 1.0)))
    stream, unit = finest_lane(compiled.lanes, compiled.domains, reals=False)
    read = float(unit) / max(ballast, LOUDEST)
    if read * level >= _LEAST_READ and ballast / level <= _LARGEST_WEIGHT:
        return level
    if read * FAINTEST_SEEN < _LEAST_READ:
        raise GraftError(
            f"{stream.label} holds multiples of {float(unit):g}, and behind the norms of a graft only those of "
            f"{_LEAST_READ / FAINTEST_SEEN * max(ballast, LOUDEST):g} can be read; scale it up"
        )
    return FAINTEST_SEEN


def least_stream_norm(level: float, bounds: np.ndarray) -> float:
    """How long the host's stream must be, that these lanes change its mean square by less than 2^-25: 0 where they
    vanish.
    """
    if (level * bounds <= _VANISHES).all():
        return 0.0
    return float((2.0**25 * ((level * bounds.astype(object)) ** 2).sum()) ** 0.5)
