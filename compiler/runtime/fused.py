"""Real Mamba blocks on a CPU by the fused path that they take on CUDA, where PyTorch's own operations take longer.

mamba_ssm takes that path where causal_conv1d is installed. It hands the weights of its submodules to one function, so
hooks on these submodules see nothing. Where a hook is needed, and everywhere outside `fused`, the other path runs.
"""

import contextlib
import sys
from collections.abc import Iterator
from contextvars import ContextVar

from compiler.runtime import cpu_layers

_on: ContextVar[bool] = ContextVar("fused", default=False)
_MODULE, _NAME = "mamba_ssm.modules.mamba_simple", "causal_conv1d_fn"


def is_fused() -> bool:
    """Whether this runs within `fused`."""
    return _on.get()


@contextlib.contextmanager
def fused() -> Iterator[None]:
    """Within the context Mamba blocks, of mamba_ssm and ours, take the fused path. For CPU tensors only."""
    module = sys.modules.get(_MODULE)
    before = getattr(module, _NAME, None)
    token = _on.set(True)
    if module is not None and before is None:
        setattr(module, _NAME, cpu_layers.causal_conv1d)  # not called: that there is one chooses the path
    try:
        yield
    finally:
        _on.reset(token)
        if module is not None:
            setattr(module, _NAME, before)
