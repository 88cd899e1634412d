"""Loads the modules that register checks."""

import importlib

MODULES = (
    "speed",
    "streams",
    "messages",
    "replicas",
    "cuts",
    "memory",
    "ladder",
    "transformer",
    "feeding",
    "flight",
    "programs",
)


def load() -> None:
    """After this, `registry.CHECKS` is complete."""
    for name in MODULES:
        importlib.import_module(f"gpu.{name}")
