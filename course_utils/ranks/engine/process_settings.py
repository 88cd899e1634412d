"""What a function may set for its whole process, and what is set back after an answer that may be wrong.

Otherwise one answer's `np.seterr(all="raise")` or `torch.set_default_dtype` would make the next answer fail.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def settings_kept() -> Iterator[None]:
    """Set back what is set inside: NumPy's and torch's settings, the filters of warnings, the limit of recursion."""
    import numpy as np

    depth = sys.getrecursionlimit()
    try:
        with warnings.catch_warnings(), np.errstate(), np.printoptions(), _torch_kept():
            yield
    finally:
        sys.setrecursionlimit(depth)


@contextmanager
def _torch_kept() -> Iterator[None]:
    """Torch is not imported for this: where the function imports it, float32 and gradients come back."""
    torch = _imported_torch()
    dtype, gradients = (torch.get_default_dtype(), torch.is_grad_enabled()) if torch else (None, True)
    try:
        yield
    finally:
        if torch := _imported_torch():
            torch.set_default_dtype(dtype or torch.float32)
            torch.set_grad_enabled(gradients)


def _imported_torch() -> ModuleType | None:
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "set_grad_enabled") else None  # its import may have been broken off
