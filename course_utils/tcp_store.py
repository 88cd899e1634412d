"""torch's TCPStore, at which ranks meet, on one address of its machine; by itself it listens on all, to everybody."""

import contextlib
import errno
import ipaddress
import os
import socket
from datetime import timedelta
from typing import TYPE_CHECKING

from course_utils.errors import CourseError

if TYPE_CHECKING:
    import torch.distributed as dist


def own_address() -> str:
    """The address of this machine on the network that gloo is told to use, or its name."""
    import psutil

    with contextlib.suppress(KeyError):
        of_interface = psutil.net_if_addrs()[os.environ["GLOO_SOCKET_IFNAME"]]
        return next(each.address for each in of_interface if each.family == socket.AF_INET)
    return socket.gethostname()


def _listening(host: str, port: int) -> socket.socket | None:
    """A socket that listens where the others look for `host`; None where only all addresses will do.

    A name may stand for loopback on its own machine alone, as Debian has it (127.0.1.1), or for an address that is
    translated on its way.

    Raises:
        CourseError: the port is taken.
    """
    try:
        family, _, _, _, (address, *_) = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError:
        return None
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback and address != host:
        return None
    try:
        return socket.create_server((address, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CourseError(
                f"Port {port} of {host}, where the processes should meet, is in use. "
                "`export MASTER_PORT=…` chooses a different port."
            ) from None
        return None


def tcp_store(host: str, port: int, world_size: int, timeout: timedelta, *, serve: bool) -> "dist.TCPStore":
    """The store at which ranks meet: rank 0's, which serves and listens on that address only if it can, or the others'.

    There is no password.

    Args:
        port: 0 for one that is free, which the store then has as its own `port`.

    Raises:
        CourseError: the port is taken.
    """
    import torch.distributed as dist

    own = {}
    if serve and (listening := _listening(host, port)):
        port = listening.getsockname()[1]
        own["master_listen_fd"] = listening.detach()
    return dist.TCPStore(host, port, world_size, serve, timeout, wait_for_workers=False, **own)
