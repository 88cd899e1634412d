"""What a box may not ask the kernel for: a filter of system calls, as bubblewrap's `--seccomp` takes it.

Most of it is out of reach for who owns nothing. Not so: sockets that belong to no network, such as those between a
virtual machine and its host; keyrings; and the doors through which holes in the kernel were found most often. And boxes
with counted links see the same files of the system: nobody may lock them or watch who opens them, which carries bytes.

Source: the manuals seccomp(2) and bpf(2); numbers of the calls from the kernel's unistd.h.
"""

import errno
import platform
import socket
import struct
from collections.abc import Sequence

_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16)  # the last one, netlink, lists interfaces
_NAMESPACES = 0x7E020000
"""The flags of `clone` that make a namespace."""
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""How the kernel calls each, and which of the numbers below are its own."""
_SOCKET, _CLONE = (41, 198), (56, 220)
_MISSING = {"clone3": (435, 435), "io_uring_setup": (425, 425)}
"""As if the kernel were too old for them: what is needed goes on in the old way."""
_REJECTED = {
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
}
_REJECTED_WITH_LINKS = {
    "flock": (73, 32),
    "inotify_init": (253, None),  # which ARM never had
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
}
_FCNTL, _LOCKS = (72, 25), (5, 6, 7, 36, 37, 38)
"""What `fcntl` is asked for where it is about locks: F_GETLK, F_SETLK, F_SETLKW, and the same with F_OFD_."""
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24  # where they stand, in bytes
_OLD_NUMBERS = 0x40000000  # from here on, x86-64 has every call once more
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
Step = tuple[int, int, int, int]
"""Operation, steps to leave out where it holds and where it does not, number."""


def rejections(linked: bool, machine: str = platform.machine()) -> bytes:
    """The filter; empty for processors whose numbers are not listed here.

    `linked`: for a box that has nothing in common with others but links that are counted.
    """
    if machine not in _ARCHITECTURES:
        return b""
    name, place = _ARCHITECTURES[machine]
    steps = [_load(_ARCHITECTURE), (_EQUAL, 1, 0, name), _answer(_KILL), _load(_NUMBER)]
    steps += [(_AT_LEAST, 0, 1, _OLD_NUMBERS), _error(errno.ENOSYS)]
    rejected = _REJECTED | (_REJECTED_WITH_LINKS if linked else {})
    for calls, error in ((_MISSING, errno.ENOSYS), (rejected, errno.EPERM)):
        for numbers in calls.values():
            if (number := numbers[place]) is not None:
                steps += _where(number, [_error(error)])
    if linked:
        locks = [step for command in _LOCKS for step in ((_EQUAL, 0, 1, command), _error(errno.EPERM))]
        steps += _where(_FCNTL[place], [_load(_SECOND_ARGUMENT), *locks])
    steps += _where(_CLONE[place], [_load(_FIRST_ARGUMENT), (_ANY_BIT, 0, 1, _NAMESPACES), _error(errno.EPERM)])
    known = [step for family in _FAMILIES for step in ((_EQUAL, 0, 1, family), _answer(_ALLOW))]
    steps += _where(_SOCKET[place], [_load(_FIRST_ARGUMENT), *known, _error(errno.EAFNOSUPPORT)])
    return b"".join(struct.pack("=HBBI", *step) for step in [*steps, _answer(_ALLOW)])


def _where(number: int, steps: Sequence[Step]) -> list[Step]:
    """These steps for one system call, which is then allowed."""
    steps = [*steps, _answer(_ALLOW)]
    return [(_EQUAL, 0, len(steps), number), *steps]


def _load(place: int) -> Step:
    return _LOAD, 0, 0, place


def _answer(what: int) -> Step:
    return _RETURN, 0, 0, what


def _error(number: int) -> Step:
    return _answer(_ERROR | number)
