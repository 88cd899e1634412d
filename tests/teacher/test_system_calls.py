"""The filter of system calls, run as the kernel runs it: step by step, over a call's numbers."""

import errno
import socket
import struct
from fcntl import F_GETFL, F_SETFD

import pytest

from course_utils.teacher.system_calls import rejections

ALLOWED, KILLED = "allowed", "killed"
NEW_USERS = 0x10000000
X86, ARM = ("x86_64", 0xC000003E), ("aarch64", 0xC00000B7)


def answer_to(
    machine: tuple[str, int], call: int, *arguments: int, architecture: int | None = None, linked: bool = False
) -> int | str:
    """What the filter says of a system call: an error's number, or one of the words above."""
    steps = list(struct.iter_unpack("=HBBI", rejections(linked, machine[0])))
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", call, machine[1] if architecture is None else architecture, 0, *padded)
    loaded, place = 0, 0
    while True:
        operation, true, false, number = steps[place]
        place += 1
        if operation == 0x20:
            [loaded] = struct.unpack_from("<I", data, number)
        elif operation == 0x06:
            return {0x7FFF0000: ALLOWED, 0x80000000: KILLED}.get(number, number & 0xFFFF)
        else:
            holds = {0x15: loaded == number, 0x35: loaded >= number, 0x45: bool(loaded & number)}[operation]
            place += true if holds else false


@pytest.mark.parametrize(
    ("machine", "read", "socket_number", "clone", "mount", "keyctl"),
    [(X86, 0, 41, 56, 165, 250), (ARM, 63, 198, 220, 40, 219)],
    ids=["x86-64", "ARM"],
)
def test_what_answers_need_is_allowed_and_what_leads_out_is_not(
    machine, read, socket_number, clone, mount, keyctl
) -> None:
    assert answer_to(machine, read, 3) == ALLOWED
    for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16):
        assert answer_to(machine, socket_number, family, 1) == ALLOWED
    for family in (socket.AF_VSOCK, 17, 31, 38):  # of virtual machines; packets; Bluetooth; ciphers
        assert answer_to(machine, socket_number, family, 1) == errno.EAFNOSUPPORT
    assert answer_to(machine, clone, 17) == ALLOWED
    assert answer_to(machine, clone, 17 | NEW_USERS) == errno.EPERM
    assert answer_to(machine, mount) == answer_to(machine, keyctl) == errno.EPERM
    assert answer_to(machine, 435) == answer_to(machine, 425) == errno.ENOSYS  # clone3, io_uring_setup


def test_calls_by_another_table_are_no_way_around() -> None:
    assert answer_to(X86, 41, socket.AF_VSOCK, architecture=0x40000003) == KILLED  # as a 32-bit program calls
    assert answer_to(X86, 0x40000000 + 41, socket.AF_VSOCK) == errno.ENOSYS


def test_a_processor_whose_numbers_are_not_known_has_no_filter() -> None:
    assert rejections(True, "s390x") == b""


@pytest.mark.parametrize(("machine", "fcntl", "others"), [(X86, 72, (73, 253, 294, 300)), (ARM, 25, (32, 26, 262))])
def test_files_that_linked_boxes_have_in_common_carry_nothing(machine, fcntl, others) -> None:
    for command in (F_GETFL, F_SETFD):
        assert answer_to(machine, fcntl, 3, command, linked=True) == ALLOWED
    for command in (5, 6, 7, 36, 37, 38):
        assert answer_to(machine, fcntl, 3, command, linked=True) == errno.EPERM
        assert answer_to(machine, fcntl, 3, command) == ALLOWED
    for call in others:
        assert answer_to(machine, call, 3, linked=True) == errno.EPERM
        assert answer_to(machine, call, 3) == ALLOWED
