"""While a learner's answer is judged on a rank, the course's own answer to that exercise cannot be called."""

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

HIDDEN = "the course's own {name} is hidden while answers are judged"


def call_without(places: Sequence[str], function: Callable, *arguments: Any) -> Any:
    """Call `function(*arguments)` while the functions at `places`, "module:function", raise NotImplementedError."""
    with contextlib.ExitStack() as hidden:
        for dotted_name in places:
            hidden.enter_context(_hidden(dotted_name))
        return function(*arguments)


@contextlib.contextmanager
def _hidden(dotted_name: str) -> Iterator[None]:
    """Hide a function now, or when somebody imports its module, which may bring torch: no check waits for that."""
    name, _, function = dotted_name.partition(":")
    with contextlib.ExitStack() as back:

        def hide(module: ModuleType) -> None:
            back.enter_context(_exchanged(getattr(module, function)))

        if module := sys.modules.get(name):
            hide(module)
        else:
            finder = _WhenImported(name, hide)
            sys.meta_path.insert(0, finder)
            back.callback(sys.meta_path.remove, finder)
        yield


_hiding: dict[Callable, list] = {}
"""Functions that are hidden, each with its code, and by how many ranks: virtual ones share a process."""


@contextlib.contextmanager
def _exchanged(function: Callable) -> Iterator[None]:
    """Exchange the function's code: whoever has imported it under whatever name holds the same function."""
    function = inspect.unwrap(function)
    hiding = _hiding.setdefault(function, [function.__code__, 0])
    function.__code__ = _that_raises(function.__name__)
    hiding[1] += 1
    try:
        yield
    finally:
        hiding[1] -= 1
        if not hiding[1]:
            function.__code__ = hiding[0]
            del _hiding[function]


def _that_raises(name: str) -> Any:
    text = HIDDEN.format(name=name)
    names: dict[str, Any] = {}
    exec(f"def hidden(*_, **__):\n    raise NotImplementedError({text!r})", names)
    return names["hidden"].__code__


class _WhenImported(MetaPathFinder):
    """Finds one module as usual; while it is in `sys.meta_path`, does something with it once it is imported."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name, self._then = name, then

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        behind = sys.meta_path[sys.meta_path.index(self) + 1 :]  # among them, those for other functions of this module
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in behind)), None)
        if spec and spec.loader:
            run = spec.loader.exec_module

            def run_and_then(module: ModuleType) -> None:
                run(module)
                if self in sys.meta_path:
                    self._then(module)

            vars(spec.loader)["exec_module"] = run_and_then
        return spec
