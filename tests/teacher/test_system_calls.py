"""The filter of system calls: what a process in a box gets from the kernel."""

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from course_utils.teacher import system_calls
from course_utils.teacher.sandbox import Sandbox
from tests.teacher.submissions import needs_a_box

pytestmark = needs_a_box
FORBIDDEN = (
    "add_key bpf clone3 fsopen init_module io_uring_setup kcmp kexec_load keyctl mount mount_setattr move_mount "
    "open_by_handle_at open_tree perf_event_open personality pivot_root ptrace reboot request_key setns swapon umount2 "
    "unshare userfaultfd"
)
INSIDE = """
import ctypes, errno, json, os, signal, socket, sys
numbers, clone = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)

def answer(number, *arguments):
    ctypes.set_errno(0)
    return libc.syscall(number, *map(ctypes.c_long, arguments)), errno.errorcode.get(ctypes.get_errno(), "")

def child_of(flags):
    process, error = answer(clone, flags | signal.SIGCHLD, 0, 0, 0, 0)
    if process == 0:
        os._exit(0)
    return error

def socket_of(family):
    try:
        socket.socket(family, socket.SOCK_RAW if family in (16, 17) else socket.SOCK_STREAM).close()
    except OSError as error:
        return errno.errorcode[error.errno]
    return ""

print(json.dumps([
    {name: answer(number, 0, 0, 0, 0, 0)[1] for name, number in numbers.items()},
    {family: socket_of(family) for family in (1, 2, 10, 16, 17, 31, 38, 40)},
    [child_of(0), child_of(0x10000000)],
]))
"""


def in_a_box(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess:
    (folder / "package").mkdir()
    command = Sandbox.of(folder).command([sys.executable, "-c", program, *arguments])
    return subprocess.run(command, capture_output=True, text=True, check=False)


def numbers_of(names: str) -> dict[str, int]:
    seccomp = system_calls.library()
    numbers = {name: seccomp.resolve_syscall(seccomp.Arch.NATIVE, name) for name in names.split()}
    return {name: number for name, number in numbers.items() if number >= 0}


def test_what_leads_out_of_a_box_is_answered_as_if_the_kernel_did_not_have_it(tmp_path) -> None:
    numbers = numbers_of(FORBIDDEN)
    done = in_a_box(tmp_path, INSIDE, json.dumps([numbers, numbers_of("clone")["clone"]]))
    calls, sockets, children = json.loads(done.stdout or done.stderr)
    assert calls == dict.fromkeys(numbers, "ENOSYS") and len(numbers) > 20
    known = {"1", "2", "10", "16"}  # of files, IPv4, IPv6, netlink; then packets, Bluetooth, ciphers, virtual machines
    assert {family for family, error in sockets.items() if not error} == known, sockets
    assert {error for family, error in sockets.items() if family not in known} == {"ENOSYS"}
    assert children == ["", "ENOSYS"], "a child, and one in a namespace of users of its own"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have no second table")
def test_calls_by_another_table_are_no_way_around(tmp_path) -> None:
    program = "import ctypes; ctypes.CDLL(None).syscall(0x40000000 + 41, 40, 1, 0); print('went on')"
    done = in_a_box(tmp_path, program)
    assert done.returncode and not done.stdout


def test_every_name_is_one_of_a_system_call() -> None:
    seccomp = system_calls.library()
    names = system_calls._ALLOWED
    newest = {"fchmodat2"}  # of Linux 6.6, which older libraries do not know
    unknown = {name for name in names if seccomp.resolve_syscall(seccomp.Arch.X86_64, name) == system_calls._UNKNOWN}
    assert unknown <= newest and len(set(names)) == len(names)
    assert "ptrace" not in names and not {"clone", "socket"} & {*names}
