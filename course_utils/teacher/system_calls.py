"""The system-call filter of a sandbox, as bubblewrap's `--seccomp` takes it.

It names what Python, NumPy, torch, MPI and plain programs ask for; the kernel answers every other call as if it were
too old for it, upon which libraries take an older way. So there are no keyrings, no new namespaces, no tracing of other
processes, no sockets but those of networks and files, and few of the calls in which holes in the kernel were found.

Source: the manuals seccomp(2) and seccomp_rule_add(3). libseccomp knows the calls' numbers on each processor.
"""

import errno
import socket
from types import ModuleType
from typing import BinaryIO

_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16)  # the last one, netlink, lists interfaces
_NEW_NAMESPACES = 0x7E020000
"""The flags of `clone` that make a namespace."""
_UNKNOWN = -1
"""The number of a call that this libseccomp does not know."""
_FILES = """
    access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64
    fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fstat
    fstatfs fsync ftruncate getcwd getdents getdents64 getxattr ioctl lchown lgetxattr link linkat listxattr
    llistxattr lseek lstat memfd_create mkdir mkdirat mknod mknodat newfstatat open openat openat2 pipe pipe2
    pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv rename renameat
    renameat2 rmdir sendfile splice stat statfs statx symlink symlinkat sync sync_file_range syncfs tee truncate
    umask unlink unlinkat utime utimensat utimes write writev
"""
_MEMORY = """
    brk get_mempolicy madvise mbind membarrier mincore mlock mlock2 mlockall mmap mprotect mremap msync munlock
    munlockall munmap set_mempolicy shmat shmctl shmdt shmget
"""
_PROCESSES = """
    arch_prctl capget capset execve execveat exit exit_group fork futex futex_waitv get_robust_list getcpu getegid
    geteuid getgid getgroups getpgid getpgrp getpid getppid getpriority getresgid getresuid getrlimit getrusage
    getsid gettid getuid kill pause pidfd_open pidfd_send_signal prctl prlimit64 process_vm_readv process_vm_writev
    restart_syscall rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend
    rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr
    sched_getparam sched_getscheduler sched_setaffinity sched_setparam sched_setscheduler sched_yield
    set_robust_list set_tid_address setgid setgroups setpgid setpriority setregid setresgid setresuid setreuid
    setrlimit setsid setuid sigaltstack sysinfo tgkill tkill uname vfork wait4 waitid
"""
_TIME = """
    alarm clock_getres clock_gettime clock_nanosleep getitimer gettimeofday nanosleep setitimer time timer_create
    timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times
"""
_WAITING = """
    epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 poll ppoll pselect6
    select signalfd signalfd4
"""
_SOCKETS = """
    accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg sendmmsg sendmsg
    sendto setsockopt shutdown socketpair
"""
_ALLOWED = f"{_FILES} {_MEMORY} {_PROCESSES} {_TIME} {_WAITING} {_SOCKETS} getrandom".split()


def write_filter(file: BinaryIO) -> None:
    """Write the filter for this machine's processor."""
    seccomp = library()
    allowing = seccomp.SyscallFilter(seccomp.ERRNO(errno.ENOSYS))
    for name in _ALLOWED:
        if (number := seccomp.resolve_syscall(seccomp.Arch.NATIVE, name)) != _UNKNOWN:
            allowing.add_rule(seccomp.ALLOW, number)
    # A structure in memory, which no filter can read, says what `clone3` is to do: it is not here, and `clone` is.
    allowing.add_rule(seccomp.ALLOW, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, _NEW_NAMESPACES, 0))
    for family in _FAMILIES:
        allowing.add_rule(seccomp.ALLOW, "socket", seccomp.Arg(0, seccomp.EQ, family))
    allowing.export_bpf(file)


def library() -> ModuleType:
    """libseccomp, through pyseccomp.

    Raises:
        RuntimeError: the system does not have it.
    """
    import pyseccomp

    return pyseccomp
