"""What the course asks the operating system itself: processes, cores, counters, and what processes share.

No other module reads /proc or calls what Linux alone has (`tests/ground/test_system.py` looks). Where other systems
know the answer too, psutil asks them. Where only Linux knows it, there is none elsewhere: each function says what it
gives then, and whoever asked goes on without.
"""

import contextlib
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator, Sequence

LINUX = sys.platform == "linux"
LOOPBACK = "lo" if LINUX else "lo0"
"""The name of the interface that leads from this machine to itself."""
CONTROL_GROUPS, CONTROLLERS = "/proc/self/cgroup", "/sys/fs/cgroup"
"""The groups that this process is in, and where their limits stand; Linux alone has them."""
NVIDIA_GPUS = "/proc/driver/nvidia/gpus"
"""What the driver tells of each GPU; Linux alone has it."""
CACHES = "/sys/devices/system/cpu/cpu0/cache"
"""The sizes of a core's caches; Linux alone has it."""
OWN_IO = "/proc/self/io"
"""What this process has read and written; Linux alone has it."""
SHOW_PROCESSES = "mount -t proc proc /proc"
"""What an administrator types where Linux hides its processes."""
_SHARED_MEMORY = "/dev/shm"
_TCP_INFO, _BYTES_SENT = 11, 200  # the option, and its field's place in `struct tcp_info`, linux/tcp.h
_QUEUED = 0x5411  # SIOCOUTQ of linux/sockios.h
_NAMESPACES = {"user": 0x10000000, "mnt": 0x00020000, "net": 0x40000000}  # CLONE_NEWUSER, _NEWNS, _NEWNET of sched.h
_DEATH_SIGNAL, _NAME = 1, 15  # of prctl


# --- processes --------------------------------------------------------------------------------------------------------


def started_at(pid: int) -> int | None:
    """A number for when a process started; None when there is none. With the pid it names one process ever."""
    if LINUX:  # many times a second, and psutil takes ten times as long
        fields = _stat(pid)
        return None if not fields or fields[0] in "ZX" else int(fields[19])
    import psutil

    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            return hash(process) % (1 << 61)  # of its number and its start, which setting the clock does not change
    return None


def marked(variable: str) -> Iterator[tuple[int, str]]:
    """(process, value) of every living process of this user in whose environment a variable stood when it began."""
    if not LINUX:
        yield from _marked_elsewhere(variable).items()
        return
    key = f"{variable}=".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            for text in file.read().split(b"\0"):
                if text.startswith(key) and started_at(int(pid)) is not None:
                    yield int(pid), os.fsdecode(text[len(key) :])


def _marked_elsewhere(variable: str) -> dict[int, str]:
    """The same by psutil. A Mac hides the environment of its own programs, such as /bin/sh: their parent's counts."""
    import psutil

    found, parents = {}, {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            parents[process.pid] = process.ppid()
            if value := process.environ().get(variable):
                found[process.pid] = value
    hidden = {pid: found[parent] for pid, parent in parents.items() if pid not in found and parent in found}
    return {pid: value for pid, value in {**found, **hidden}.items() if started_at(pid) is not None}


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, its threads and the kernel's work for it included; on Linux in ticks of 10 ms.

    Raises:
        ProcessLookupError: it has ended.
    """
    if LINUX:
        if fields := _stat(pid):
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    else:
        import psutil

        with contextlib.suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            return times.user + times.system
    raise ProcessLookupError(pid)


def wants_to_run(pid: int) -> bool:
    """Does a process compute, or wait for a core or a disk, at this moment? Not so if it sleeps, waits or has ended."""
    if LINUX:
        return _stat(pid)[:1] in (["R"], ["D"])
    import psutil

    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
    return False


def _stat(pid: int | str) -> list[str]:
    """What /proc/PID/stat says after the process's name, from the third field on; empty when there is none."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()
    return []


def memory_kills() -> int:
    """How many processes the kernel has ended for want of memory since the machine started; 0 but on Linux."""
    with contextlib.suppress(OSError), open("/proc/vmstat") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), 0)
    return 0


def memory_available() -> int:
    """Bytes that this machine can still give to programs."""
    if LINUX:
        with open("/proc/meminfo") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("MemAvailable:"))
    import psutil

    return psutil.virtual_memory().available


def give_back_memory() -> None:
    """Hand the memory that this process has freed back to the system at once; nothing where the C library cannot."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)


# --- cores and the machine --------------------------------------------------------------------------------------------


def cores() -> list[int]:
    """The numbers of the cores that this process may use; all of the machine's where the system does not bind any."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def bind_to(numbers: Sequence[int]) -> None:
    """Let this process use these cores and no others; nothing where the system binds no process."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, numbers)


def let_others_run() -> None:
    """Give this core to another process that waits for it."""
    os.sched_yield() if hasattr(os, "sched_yield") else time.sleep(0)


def processor() -> str:
    """What the system calls its processor; "" where it does not say."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")
    return ""


def boot() -> str:
    """A name for this machine since it was last started, by which processes know that they share a clock."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
    return socket.gethostname()


# --- counters ---------------------------------------------------------------------------------------------------------


def interfaces(pid: int) -> dict[str, tuple[int, int]]:
    """Bytes sent and received so far by each interface of the network in which a process is. Linux alone.

    Raises:
        OSError: it has ended, or this is not Linux.
    """
    with open(f"/proc/{pid}/net/dev") as file:
        lines = file.read().splitlines()[2:]
    fields = {name.strip(): values.split() for name, _, values in (line.partition(":") for line in lines)}
    return {name: (int(values[8]), int(values[0])) for name, values in fields.items()}


def own_io(name: str, file: str = OWN_IO) -> int:
    """Bytes that this process has "rchar" read, "wchar" written, "read_bytes" fetched from a disk; 0 but on Linux."""
    with contextlib.suppress(OSError), open(file) as lines:
        return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)
    return 0


def forget(descriptor: int) -> None:
    """Ask the system to drop a file from the memory in which it keeps what was read; nothing but on Linux."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def open_files() -> list[int]:
    """The descriptors that this process holds open; empty where the system does not say."""
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir("/dev/fd")]
    return []


def sent_by(connection: socket.socket) -> int | None:
    """Bytes that a TCP connection has sent so far, as the kernel counts them; None but on Linux."""
    info = connection.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 256) if LINUX else b""
    return struct.unpack_from("Q", info, _BYTES_SENT)[0] if len(info) >= _BYTES_SENT + 8 else None


def queued_in(connection: socket.socket) -> int:
    """Bytes that were written into a TCP connection and that the other side has not confirmed yet; 0 but on Linux."""
    if not LINUX:
        return 0
    import fcntl

    with contextlib.suppress(OSError):  # it only listens
        return struct.unpack("i", fcntl.ioctl(connection.fileno(), _QUEUED, bytes(4)))[0]
    return 0


# --- shared memory ----------------------------------------------------------------------------------------------------


def shared_names() -> set[str]:
    """What has a name in the memory that processes share; empty but on Linux, where alone it can be listed."""
    return set(os.listdir(_SHARED_MEMORY)) if LINUX else set()


def shared_names_of(pid: int) -> set[str]:
    """Those of them that a process has mapped."""
    found = set()
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as file:
        for line in file:
            name = line.rstrip("\n").partition(f"{_SHARED_MEMORY}/")[2]
            if name and not name.endswith("(deleted)"):
                found.add(name)
    return found


def shared_mappings(file: str = "/proc/self/maps") -> dict[str, int]:
    """Where this process has mapped files or named memory that others may map too, for writing → bytes; Linux alone."""
    found = {}
    with contextlib.suppress(OSError), open(file) as lines:
        for fields in (line.split(maxsplit=5) for line in lines):
            name = fields[-1].strip()
            device = name.startswith("/dev/") and not name.startswith(f"{_SHARED_MEMORY}/")
            if len(fields) == 6 and fields[1][1] == "w" and fields[1][3] == "s" and not device:
                first, _, end = fields[0].partition("-")
                found[fields[0]] = int(end, 16) - int(first, 16)
    return found


def remove_shared(name: str) -> None:
    """Remove such a name, if it is there; what is mapped stays until its processes end."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(_SHARED_MEMORY, name))


def sealed_memory(name: str, size: int) -> int:
    """The descriptor of memory that has no file, and whose size nobody can change. Linux alone."""
    import fcntl

    memory = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(memory, size)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return memory


# --- for what runs on Linux alone: the fork server, and ranks that are nodes -----------------------------------------


def namespaces(*names: str) -> list[str]:
    """What tells this process's namespaces, such as "user" or "net", from others'."""
    return [os.readlink(f"/proc/self/ns/{name}") for name in names]


def open_namespace(name: str) -> int:
    """The descriptor of a namespace of this process, with which another one may enter it."""
    return os.open(f"/proc/self/ns/{name}", os.O_RDONLY)


def enter_namespace(name: str, descriptor: int) -> None:
    """Move this thread, and those that it starts later, into a namespace; it may be there already.

    Raises:
        OSError: the system does not allow it.
    """
    if os.fstat(descriptor).st_ino != os.stat(f"/proc/self/ns/{name}").st_ino:
        import ctypes

        if ctypes.CDLL(None, use_errno=True).setns(descriptor, _NAMESPACES[name]):
            number = ctypes.get_errno()
            raise OSError(number, f"{os.strerror(number)}: cannot enter the {name} namespace")


def end_with_parent(number: int) -> None:
    """Get this signal when the process that started this one ends."""
    import ctypes

    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, number)


def take_name(name: str) -> None:
    """Be listed under a name, by `ps` for example."""
    import ctypes

    ctypes.CDLL(None).prctl(_NAME, name.encode(), 0, 0, 0)


def show_environment(first: str) -> None:
    """Write the environment where the system looks for it, as much as fits, beginning with one variable.

    There `marked` reads what a forked process has in it. Source: proc_pid_stat(5), env_start and env_end. No variable
    may point into this memory any more.
    """
    import ctypes

    fields = _stat("self")
    begin, end = int(fields[47]), int(fields[48])  # the 50th and 51st, of which two stand before the bracket
    variables = sorted(os.environ.items(), key=lambda item: item[0] != first)
    text = "".join(f"{name}={value}\0" for name, value in variables).encode("utf-8", "surrogateescape")
    ctypes.memset(begin, 0, end - begin)
    ctypes.memmove(begin, text, min(len(text), end - begin - 1))


def has_one_thread() -> bool:
    """Whether this process runs no thread beside its first."""
    return len(os.listdir("/proc/self/task")) == 1


def asking_user(connection: socket.socket) -> int:
    """The user whose process is at the other end of a Unix socket."""
    size = struct.calcsize("3i")
    return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1]


def bind_in(folder: str, name: str) -> socket.socket:
    """A Unix socket of that name in a folder, however long the folder's path is: a socket's may have 107 bytes."""
    listener = socket.socket(socket.AF_UNIX)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        listener.bind(f"/proc/self/fd/{descriptor}/{name}")
    finally:
        os.close(descriptor)
    return listener
