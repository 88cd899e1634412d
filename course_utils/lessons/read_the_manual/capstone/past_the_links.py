"""What a rank hands over past the links, as nodes of one machine could: by files, shared memory, Unix sockets."""

import mmap
import os
import socket
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from course_utils import system

NOTHING_SHARED = "nodes share neither files nor memory, and what one learns must be sent"
"""Ends the line about what went past the links."""
_UNIX = getattr(socket, "AF_UNIX", None)


class NoSocketToOthers(OSError):
    """A Unix socket that should lead to another node."""


@dataclass
class _Seen:
    """What Python has told of this process since it was asked first: bytes mapped, and calls of Unix sockets."""

    mapped: int = 0
    unix_sockets: int = 0

    def take_in(self, event: str, given: tuple[Any, ...]) -> None:
        """Take in one of Python's audit events; see "Audit events table" in its manual."""
        if event == "mmap.__new__":
            descriptor, length, access = given[:3]
            if descriptor >= 0 and access not in (mmap.ACCESS_READ, mmap.ACCESS_COPY):
                self.mapped += length or os.fstat(descriptor).st_size
        elif event in ("socket.connect", "socket.sendto"):
            self.unix_sockets += given[0].family == _UNIX


@cache
def _seen() -> _Seen:
    """The only one of this process: what looks at audit events stays for good."""
    seen = _Seen()
    sys.addaudithook(seen.take_in)
    return seen


class PastTheLinks:
    """Counts from its making on what other ranks could read without a link; what is only read is not counted."""

    def __init__(self) -> None:
        self._written, self._mappings = written(), system.shared_mappings()
        self._mapped, self._unix_sockets = _seen().mapped, _seen().unix_sockets
        self._grown: dict[str, int] = {}

    def note_mappings(self) -> None:
        """Note what is mapped at this moment, by C++ code too, which tells Python nothing; takes a millisecond."""
        found = system.shared_mappings()
        self._grown |= {path: size for path, size in found.items() if path not in self._mappings}

    def so_far(self, sent: int) -> dict[str, int]:
        """Since then: bytes written into "files", bytes mapped of "memory", and calls of "Unix sockets".

        Args:
            sent: bytes of what was written that went into links.
        """
        self.note_mappings()
        return {
            "files": max(0, written() - self._written - sent),
            "memory": max(sum(self._grown.values()), _seen().mapped - self._mapped),
            "Unix sockets": _seen().unix_sockets - self._unix_sockets,
        }


def written() -> int:
    """Bytes that this process has written so far, into sockets and files alike; 0 where the kernel does not say."""
    return system.own_io("wchar")
