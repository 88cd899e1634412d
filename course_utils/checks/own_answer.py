"""While a learner's answer is judged on a rank, the course's own answer to that exercise cannot be called."""

import contextlib
import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def call_without(places: Sequence[str], function: Callable, *arguments: Any) -> Any:
    """Call `function(*arguments)` while the functions at `places`, "module:function", raise NotImplementedError."""
    with contextlib.ExitStack() as hidden:
        for place in places:
            hidden.enter_context(_hidden(place))
        return function(*arguments)


@contextlib.contextmanager
def _hidden(place: str) -> Iterator[None]:
    """Exchange the function's code: whoever has imported it under whatever name holds the same function."""
    module, _, name = place.partition(":")
    function = inspect.unwrap(getattr(importlib.import_module(module), name))
    code, function.__code__ = function.__code__, _that_raises(name)
    try:
        yield
    finally:
        function.__code__ = code


def _that_raises(name: str) -> Any:
    text = f"the course's own {name} is hidden while answers are judged"
    names: dict[str, Any] = {}
    exec(f"def hidden(*_, **__):\n    raise NotImplementedError({text!r})", names)
    return names["hidden"].__code__
