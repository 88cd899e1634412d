"""Calls in words: "recv(source=1, tag=4)". Only arguments that matter are named."""

import os
import sys
import sysconfig
from functools import cache, lru_cache
from itertools import accumulate
from types import CodeType

from course_utils.trace.events import Event

_STANDARD_LIBRARY = sysconfig.get_path("stdlib") + os.sep


@lru_cache(10_000)
def send_text(name: str, dest: int, tag: int = 0, in_run: int | None = None) -> str:
    """ "Ssend(dest=1, tag=7)"; the default tag, 0, goes without saying.

    Args:
        name, dest, tag: of the call, and its arguments.
        in_run: the number of the other rank in the run, "Ssend(dest=1, which is rank 3)", if it is not the same.
    """
    tag_text = f", {_tag_argument(name, 'sendtag')}={tag}" if tag else ""
    return f"{name}(dest={dest}{_number_text(dest, in_run)}{tag_text})"


@lru_cache(10_000)
def receive_text(name: str, source: int | None, tag: int | None, in_run: int | None = None) -> str:
    """ "recv(source=1, tag=0)"; None for any source, and for any tag, the default, which goes without saying.

    Args:
        name, source, tag, in_run: as `send_text`'s.
    """
    tag_text = "" if tag is None else f", {_tag_argument(name, 'recvtag')}={tag}"
    who = "ANY_SOURCE" if source is None else f"{source}{_number_text(source, in_run)}"
    return f"{name}(source={who}{tag_text})"


def _number_text(rank: int, in_run: int | None) -> str:
    """What a number means on a communicator that numbers ranks anew."""
    return "" if in_run in (None, rank) else f", which is rank {in_run}"


def collective_text(name: str, root: int | None) -> str:
    """ "Bcast(root=2)"; the default root, 0, goes without saying."""
    return f"{name}(root={root})" if root else name


@cache
def function_text(code: CodeType) -> str:
    """ "Thread.join", "asyncio.run": a method with its class, a function of the standard library with its module."""
    name = code.co_qualname.partition(".<locals>")[0]
    if "." in name or not code.co_filename.startswith(_STANDARD_LIBRARY):
        return name
    path = code.co_filename.removeprefix(_STANDARD_LIBRARY).removesuffix(".py").split(os.sep)
    for module in accumulate(path, "{}.{}".format):  # the outermost that has it: asyncio, not asyncio.runners
        if getattr(getattr(sys.modules.get(module), name, None), "__code__", None) is code:
            return f"{module}.{name}"
    return name


def event_text(event: Event) -> str:
    """ "Send(dest=1, tag=7), line 4"; "Scatter(root=0), line 9"."""
    text = event.name
    if event.peer is not None:
        tag = event.tag or 0
        text = send_text(text, event.peer, tag) if event.kind == "send" else receive_text(text, event.peer, tag or None)
    elif event.agreement:
        text = str(event.agreement._replace(amount=None, unit=""))
    return f"{text}{f', line {event.line}' if event.line else ''}"


def _tag_argument(name: str, in_exchanges: str) -> str:
    """How a call names its tag; calls that send and receive at once have two of them."""
    return in_exchanges if "sendrecv" in name.lower() else "tag"
