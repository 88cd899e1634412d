"""What may be set for a whole process, and what is set back so that it does not decide whether an answer is right.

Otherwise one answer's `np.seterr(all="raise")` would make the next answer fail, and gradients that are switched off in
the notebook would make a check fail.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np


@contextmanager
def keep_settings() -> Iterator[None]:
    """Set back what is set inside: NumPy's and torch's settings, the filters of warnings, the limit of recursion."""
    depth = sys.getrecursionlimit()
    try:
        with warnings.catch_warnings(), np.errstate(), np.printoptions(), _keep_torch_settings():
            yield
    finally:
        sys.setrecursionlimit(depth)


@contextmanager
def use_default_settings() -> Iterator[None]:
    """For a while, NumPy and torch are set as in a new process."""
    with keep_settings():
        np.seterr(divide="warn", over="warn", under="ignore", invalid="warn")
        if torch := _imported_torch():
            torch.set_default_dtype(torch.float32)
            torch.set_grad_enabled(True)
        yield


@contextmanager
def _keep_torch_settings() -> Iterator[None]:
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
