"""Multi-query associative recall: pairs (key, value) are shown, later a key is shown again and its value is asked for.

`oracle.py` says what is right; `paper.py`, `benchmark.py`, `forgetting.py` and `strings.py` say where sequences come
from.
"""

from verify.tasks.mqar.benchmark import BenchmarkLayout
from verify.tasks.mqar.forgetting import ForgettingLayout
from verify.tasks.mqar.oracle import POLICIES, mqar_oracle
from verify.tasks.mqar.paper import PaperLayout
from verify.tasks.mqar.strings import AllStrings, all_strings

__all__ = ["POLICIES", "AllStrings", "BenchmarkLayout", "ForgettingLayout", "PaperLayout", "all_strings", "mqar_oracle"]
