"""Sees to it that torch.distributed is traced, whoever imports it, and that it is not imported for that."""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

_LAST = "torch", "torch.distributed"
"""Modules of which the one that is there last makes torch.distributed whole."""


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Finds torch as Python does, and has it traced once it is there."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """What the import system asks for."""
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if name in _LAST else None
        if spec and spec.loader:
            execute = spec.loader.exec_module

            def execute_and_trace(module: ModuleType) -> None:
                execute(module)
                if name == "torch" or not _is_being_imported("torch"):
                    _trace_if_there()

            spec.loader.exec_module = execute_and_trace  # type: ignore[method-assign]
        return spec


def _is_being_imported(name: str) -> bool:
    return getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False)


def _trace_if_there() -> bool:
    """Trace torch.distributed, if this torch has it and it was imported."""
    if not hasattr(sys.modules.get("torch.distributed"), "init_process_group"):
        return False
    from course_utils.trace.torch.process_groups import record_calls

    record_calls()
    return True


def trace_torch() -> None:
    """Trace torch.distributed in this process, now or when it is imported."""
    if not _trace_if_there():
        sys.meta_path.insert(0, _AfterTorch())
