"""Where the nodes of a job reach the machine of the notebook: its address, and ports of it."""

import ipaddress
import socket

from course_utils import settings
from course_utils.errors import CourseError

ENGINE_PORTS = 9
"""Of ipyparallel's controller, on which engines connect."""


def address() -> str:
    """The address of this machine that the nodes reach: $COURSE_ADDRESS, or the one of its name.

    Raises:
        CourseError: it is no address of this machine, or its name has none, or one that leads nowhere but to itself.
    """
    if named := settings.ADDRESS.value():
        return _own(named)
    name = socket.gethostname()
    try:
        found = socket.gethostbyname(name)
    except OSError as error:
        found = f"no address ({error.strerror})"
    if not found[0].isdigit() or ipaddress.ip_address(found).is_loopback:
        raise CourseError(
            f"The nodes must reach this machine, and its name, {name}, stands for {found} here. `ip -brief address` "
            "lists its addresses: `export COURSE_ADDRESS=…` before JupyterLab starts names the one of the cluster's "
            "network."
        )
    return found


def _own(named: str) -> str:
    """The address that was named, once it is certain that this machine can listen on it.

    Raises:
        CourseError: it cannot.
    """
    remedy = f"Set COURSE_ADDRESS to the one that the nodes can reach. Its addresses are {', '.join(own_addresses())}."
    try:
        found = socket.gethostbyname(named)
    except (OSError, UnicodeError):
        kind = "an IPv6 address, and ranks connect over IPv4" if ":" in named else "no address, nor a name that has one"
        raise CourseError(f"COURSE_ADDRESS={named} is {kind}. {remedy}") from None
    if not _can_listen(found, 0):
        stands_for = "" if found == named else f", which is {found},"
        raise CourseError(f"COURSE_ADDRESS={named}{stands_for} is no address of this machine. {remedy}")
    return found


def own_addresses() -> list[str]:
    """The IPv4 addresses of this machine, those of loopback last."""
    import psutil

    entries = [entry for has in psutil.net_if_addrs().values() for entry in has if entry.family == socket.AF_INET]
    found = dict.fromkeys(entry.address for entry in entries)
    return sorted(found, key=lambda text: ipaddress.ip_address(text).is_loopback)


def ports(listening: str) -> tuple[list[int], list[int]]:
    """On which ports of this machine the nodes reach the controller, and the hub: free ones of $COURSE_PORTS.

    Without it, the system chooses them, and both lists are empty.

    Raises:
        CourseError: it is no such range, or too few are free.
    """
    if not (port_range := settings.PORTS.value()):
        return [], []
    free = [port for port in port_range if _can_listen(listening, port)]
    if len(free) < ENGINE_PORTS + 1:
        raise CourseError(
            f"Ranks on nodes need {ENGINE_PORTS + 1} ports of this machine, and {len(free)} of "
            f"COURSE_PORTS={port_range[0]}-{port_range[-1]} are free."
        )
    return free[:ENGINE_PORTS], free[ENGINE_PORTS:]


def _can_listen(listening: str, port: int) -> bool:
    """Whether a program may listen there now; port 0 stands for any port."""
    try:
        socket.create_server((listening, port)).close()
    except OSError:
        return False
    return True
