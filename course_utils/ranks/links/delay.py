"""Latency between nodes: a process that holds every packet for a while. Run by `network.py`, in the switch's place.

Each node's cable ends at a bridge of its own, with a TAP device beside it: what goes into the device this process can
read, and what it writes comes out. So it is the switch between the nodes, and a slow one: a packet read from one
device is written to another this many seconds later. The rates are kept by the cables' token buckets, as without it.

Started as `python delay.py SECONDS NODES`; it imports nothing of the course, to be there at once.
"""

import contextlib
import ctypes
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

# linux/if_tun.h
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_TAP, _NO_PACKET_INFORMATION, _VNET_HEADER = 0x0002, 0x1000, 0x4000
_CHECKSUMS_LATER, _SEGMENTS_LATER = 0x01, 0x02 | 0x04  # packets of up to 64 KB, cut to size where they leave
_HEADER = 10  # bytes of struct virtio_net_hdr before each packet
_TO, _FROM = slice(_HEADER, _HEADER + 6), slice(_HEADER + 6, _HEADER + 12)  # Ethernet addresses
_LARGEST = _HEADER + 14 + (1 << 16)
_OWN = 0.0001  # seconds that a packet's way takes by itself, through this process and two cables
_AT_ONCE = 16  # packets read from one device before the next one's turn
_PR_SET_TIMERSLACK = 29
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_SLICE = 100_000  # nanoseconds, the shortest that Linux takes


def attach(name: str) -> int:
    """A descriptor for the TAP device of that name."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    flags = _TAP | _NO_PACKET_INFORMATION | _VNET_HEADER
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    fcntl.ioctl(descriptor, _TUNSETOFFLOAD, _CHECKSUMS_LATER | _SEGMENTS_LATER)
    return descriptor


def carry(ports: list[int], seconds: float) -> None:
    """Pass packets on between the devices, each so long after it came. Never returns."""
    held: deque[tuple[float, int, bytes]] = deque()  # in order of time, as the latency is one for all
    home: dict[bytes, int] = {}  # behind which device each address was last seen
    while True:
        pause = max(0.0, held[0][0] - time.monotonic()) if held else None
        for port in select.select(ports, [], [], pause)[0]:
            with contextlib.suppress(BlockingIOError):
                for _ in range(_AT_ONCE):
                    packet = os.read(port, _LARGEST)
                    home[packet[_FROM]] = port
                    held.append((time.monotonic() + seconds, port, packet))
        while held and held[0][0] <= time.monotonic():
            _, source, packet = held.popleft()
            known = home.get(packet[_TO])
            for port in [known] if known is not None else [port for port in ports if port != source]:
                with contextlib.suppress(OSError):  # a network may lose packets
                    os.write(port, packet)


def wake_up_in_time() -> None:
    """Ask to be woken to the microsecond, and before those that compute for long (Linux 6.12 and newer)."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    if number := _SCHED_SETATTR.get(os.uname().machine):
        libc.syscall(number, 0, struct.pack("IIQiIQQQ", 48, 0, 0, os.nice(0), 0, _SLICE, 0, 0), 0)


if __name__ == "__main__":
    wake_up_in_time()
    carry([attach(f"t{node}") for node in range(int(sys.argv[2]))], float(sys.argv[1]) - _OWN)
