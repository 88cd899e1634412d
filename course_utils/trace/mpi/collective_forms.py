"""Collectives in both forms: a class describes each call once, and gets a blocking and a nonblocking method of it."""

import functools
from collections.abc import Callable
from typing import Any


def with_both_forms(owner: type) -> type:
    """Make two methods of each that describes a collective, for real and for virtual ranks: `Bcast` and `Ibcast`.

    The class runs what is described with `_run_described(name, call)`, and starts it with
    `_start_described(name, nonblocking name, call)`.
    """
    for name, describe in list(vars(owner).items()):
        if name[0].isupper():
            setattr(owner, name, _blocking(name, describe))
            setattr(owner, f"I{name.lower()}", _nonblocking(name, describe))
    return owner


def _blocking(name: str, describe: Callable[..., Any]) -> Callable:
    @functools.wraps(describe)
    def collective(self: Any, *args: Any, **kwargs: Any) -> None:
        self._run_described(name, describe(self, *args, **kwargs))

    return collective


def _nonblocking(name: str, describe: Callable[..., Any]) -> Callable:
    @functools.wraps(describe)
    def collective(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._start_described(name, f"I{name.lower()}", describe(self, *args, **kwargs))

    return collective
