"""What is said to a fork server, and what stands under mpiexec in the place of a rank that the server forks.

Run as `python -I -S fork_line.py SERVER MODULE ARGUMENT…` this file asks the fork server in the folder SERVER for a
process that runs `MODULE.main(ARGUMENT…)`, with the environment, files, limits and namespaces of this one; then it
passes signals on, waits for that process's end, and ends in the same way. Where no server answers it becomes
`python -P -m MODULE ARGUMENT…` itself.

It imports `system` and some of Python's own, and nothing else: it starts once for each rank.
"""

import json
import os
import resource
import signal
import socket
import sys
import time

if __name__ == "__main__":  # the course's own package would take longer than all that is done here
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    import system  # type: ignore[import-not-found]
else:
    from course_utils import system

STEPS = ("torch", "engine")
"""The sockets of a server, the best first."""
SERVING = "serving"
"""The file in which a server's process stands, for as long as it takes requests."""
_SECONDS_FOR_A_SOCKET = 20.0
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
_NAMESPACES = ("user", "mnt")


def request_fork(
    server: str, command: list[str], environment: dict[str, str], streams: list[int], patience: float = 0.0
):
    """Ask for a process; None where no server forks one.

    Args:
        server: the server's folder.
        command: a module that has a function `main`, and its arguments.
        environment: of the new process.
        streams: its standard streams; further descriptors keep their numbers.
        patience: seconds to wait for a server that is still coming up.

    Returns:
        (process number, socket), on which "ended STATUS" will come.
    """
    line = _connect(server, time.monotonic() + patience)
    if line is None:
        return None
    targets = [0, 1, 2, *streams[3:]]
    namespaces = list(map(system.open_namespace, _NAMESPACES))
    limits = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    request = {
        "command": command,
        "environment": environment,
        "targets": targets,
        "folder": os.getcwd(),
        "cores": system.cores(),
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in limits},
    }
    text = json.dumps(request).encode()
    try:
        socket.send_fds(line, [f"{len(text):16}".encode()], [*streams, *namespaces])
        line.sendall(text)
        word, _, number = line.recv(64).decode().partition(" ")
    except OSError:
        word = ""
    finally:
        for descriptor in namespaces:
            os.close(descriptor)
    if word != "began":
        line.close()
        return None
    return int(number), line


def _connect(server: str, deadline: float):
    while True:
        for step in STEPS:
            line = socket.socket(socket.AF_UNIX)
            try:
                line.connect(os.path.join(server, step))
                return line
            except OSError:
                line.close()
        if time.monotonic() > deadline or not os.path.exists(os.path.join(server, SERVING)):
            return None
        time.sleep(0.01)


def stand_for_rank(server: str, command: list[str]) -> None:
    """Be, for whoever started this process, the one that the server forks."""
    own = [0, 1, 2, *([int(os.environ["PMI_FD"])] if "PMI_FD" in os.environ else [])]
    forked = request_fork(server, command, dict(os.environ), own, _SECONDS_FOR_A_SOCKET)
    if forked is None:
        os.execv(sys.executable, [sys.executable, "-P", "-m", *command])
    process, line = forked
    for number in _PASSED_ON:
        signal.signal(number, lambda number, _: _kill(process, number))
    for descriptor in own[3:]:
        os.close(descriptor)  # it is the rank's
    word, _, status = line.recv(64).decode().partition(" ")
    if word == "ended":
        _end_as(int(status))
    while system.started_at(process):  # the server is gone: how the rank will end, nobody can say
        time.sleep(0.1)
    os.kill(os.getppid(), signal.SIGKILL)  # the shell that would write down this process's end


def _kill(process: int, number: int) -> None:
    if system.started_at(process):
        os.kill(process, number)


def _end_as(status: int) -> None:
    """End with an exit code, or, where it is negative, by that signal."""
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -status not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    stand_for_rank(sys.argv[1], sys.argv[2:])
