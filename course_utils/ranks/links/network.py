"""A network on one machine: every rank a node of its own, behind a link of this many bits per second both ways.

`start(4, link="200 Mbit/s")` needs no root. `unshare` makes a user and a mount namespace, private to the ranks, and in
it a network namespace for each node and one for the switch between them. A cable (veth) leads from every node to the
switch; at both of its ends a token bucket (tbf) lets no more than the link's rate through. The ranks enter their nodes
in `node.py`; what adds latency is `delay.py`. Ranks on the same node send to its own address, which never leaves it.

Nothing outlives the ranks: the names of the namespaces are files on a tmpfs that only the private mount namespace
sees, so the last process takes everything with it, however it ends.

    node 0   eth0 ── tbf ── v0 ┐          ┌ v1 ── tbf ── eth0   node 1
    10.77.0.1               tbf ├─ switch ─┤ tbf               10.77.0.2
"""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from course_utils import settings, system
from course_utils.errors import CourseError

SLOWEST, FASTEST = 10e6, 2e9  # bits per second; below, a page takes minutes, above, two cores do not keep up
SHORTEST, LONGEST = 0.0005, 0.1  # seconds of latency
FEWEST_NODES, MOST_NODES = 2, 8
QUEUE_SECONDS = 0.05  # what a link may have waiting before it drops packets

_RATES = {"kbit/s": 1e3, "mbit/s": 1e6, "gbit/s": 1e9}
_TIMES = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_SBIN = ("/usr/sbin", "/sbin")  # where Debian keeps ip and tc, out of an ordinary user's reach
_PATH = f"PATH=$PATH:{':'.join(_SBIN)}; "
_SYSCTLS = (
    "tcp_slow_start_after_idle=0",  # a link's past must not slow the next run down
    "tcp_no_metrics_save=1",
    "tcp_wmem=4096 1000000 8000000",  # the kernel goes on sending while many ranks take turns on few cores
    "tcp_rmem=4096 2000000 8000000",
)
_INTERFACE_NAMES = {f"/sys/class/net/{name}": f"../../devices/virtual/net/{name}" for name in ("lo", "eth0")}
"""The links of the file system by which UCX finds a node's interfaces; the machine's own may be called otherwise."""
_ENTER = "if [ -d /sys/class/net ]; then mount -t tmpfs names /sys/class/net; "
_ENTER += "".join(f"ln -s {target} {name}; " for name, target in _INTERFACE_NAMES.items()) + "fi; "
_ENTER += 'mount -t tmpfs -o mode=700 nodes "$1"; unshare --net sh -e -c "$2"; shift 2; exec "$@"'
_PROBE = (
    "mount -t tmpfs none /tmp; ip link add course0 type bridge; ip link add course1 type veth peer name course2; "
    "tc qdisc add dev course1 root tbf rate 10mbit burst 16kb latency 50ms"
)
_KNOBS = (  # what administrators forbid namespaces with, the value that forbids, and the one that allows
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("user/max_user_namespaces", "0", "15000"),
    ("user/max_net_namespaces", "0", "15000"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
)


@dataclass(frozen=True)
class EmulatedNetwork:
    """What links the nodes have.

    Attributes:
        rates: bits per second of each node's link, the same in both directions.
        latency: seconds from one node to another, beside what the rate costs; 0 for none.
        ranks_per_node: how many ranks share a node and its link; rank r is on node r // ranks_per_node.
    """

    rates: tuple[int, ...]
    latency: float = 0.0
    ranks_per_node: int = 1

    @classmethod
    def from_words(
        cls,
        ranks: int,
        link: str | None,
        latency: str | None = None,
        slow: Mapping[int, str] | None = None,
        ranks_per_node: int = 1,
    ) -> "EmulatedNetwork | None":
        """What `start(ranks, link=…, latency=…, slow=…, ranks_per_node=…)` means; None where it asks for no network.

        Raises:
            CourseError: something that cannot be read, or that this network cannot be.
        """
        if link is None:
            if latency is not None or slow or ranks_per_node != 1:
                raise CourseError(
                    'latency=, slow= and ranks_per_node= need a link: start(4, link="200 Mbit/s", latency="1 ms").'
                )
            return None
        nodes = _nodes(ranks, ranks_per_node)
        if not FEWEST_NODES <= nodes <= MOST_NODES:
            raise CourseError(
                f"start({ranks}, link={link!r}): a network here has {FEWEST_NODES} to {MOST_NODES} nodes."
            )
        rates = [_rate("link", link)] * nodes
        for node, rate in (slow or {}).items():
            if isinstance(node, bool) or not isinstance(node, int) or not 0 <= node < nodes:
                raise CourseError(f"slow={{{node!r}: …}}: the nodes are 0 to {nodes - 1}.")
            rates[node] = _rate("slow", rate)
        return cls(tuple(rates), 0.0 if latency is None else _seconds(latency), ranks_per_node)

    @property
    def facts(self) -> dict:
        """The same as JSON keeps it."""
        return {"rates": list(self.rates), "latency": self.latency, "ranks_per_node": self.ranks_per_node}

    def __str__(self) -> str:
        usual = max(self.rates, key=self.rates.count)
        slow = [f"node {node}: {rate_text(rate)}" for node, rate in enumerate(self.rates) if rate != usual]
        latency = f", latency {self.latency * 1e3:g} ms" if self.latency else ""
        shared = "a node each" if self.ranks_per_node == 1 else f"{self.ranks_per_node} on each node"
        return f"{shared}, {rate_text(usual)} each way{latency}" + (f" ({', '.join(slow)})" if slow else "")


def rate_text(rate: float) -> str:
    """Bits per second in words: `200 Mbit/s`, `1.5 Gbit/s`."""
    return f"{rate / 1e9:g} Gbit/s" if rate >= 1e9 else f"{rate / 1e6:g} Mbit/s"


def _nodes(ranks: int, ranks_per_node: object) -> int:
    if isinstance(ranks_per_node, bool) or not isinstance(ranks_per_node, int) or ranks_per_node < 1:
        raise CourseError(f"ranks_per_node={ranks_per_node!r}: say how many ranks share a node, such as 2.")
    if ranks % ranks_per_node:
        raise CourseError(f"ranks_per_node={ranks_per_node}: {ranks} ranks do not fill nodes of {ranks_per_node}.")
    return ranks // ranks_per_node


def _rate(name: str, text: str) -> int:
    rate = _quantity(name, text, _RATES, "200 Mbit/s")
    if not SLOWEST <= rate <= FASTEST:
        raise CourseError(f"{name}={text!r}: links here have {rate_text(SLOWEST)} to {rate_text(FASTEST)}.")
    return round(rate)


def _seconds(text: str) -> float:
    seconds = _quantity("latency", text, _TIMES, "1 ms")
    if seconds and not SHORTEST <= seconds <= LONGEST:
        raise CourseError(f"latency={text!r}: here it can be {SHORTEST * 1e3:g} to {LONGEST * 1e3:g} ms, or 0 ms.")
    return seconds


def _quantity(name: str, text: object, units: dict[str, float], example: str) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-zµ/]+)\s*", text) if isinstance(text, str) else None
    if match is None or match[2].lower() not in units:
        raise CourseError(f'{name}={text!r}: say a number and a unit, such as {name}="{example}".')
    return float(match[1]) * units[match[2].lower()]


# --- may we? --------------------------------------------------------------------------------------------------------


def obstacle() -> str | None:
    """Why there can be no nodes here, and what to do about it, in one line; None where there can."""
    if not system.LINUX:
        return "only Linux can make them; in a container of Linux they work on every system."
    for tool, package in {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2", "tc": "iproute2"}.items():
        if not shutil.which(tool) and not any(Path(folder, tool).exists() for folder in _SBIN):
            return f"`{tool}` is missing: `apt install {package}` brings it."
    probe = ["unshare", "--user", "--map-root-user", "--mount", "--net", "sh", "-e", "-c", _PATH + _PROBE]
    done = subprocess.run(probe, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode == 0:
        return None
    reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
    if _knob() or "unshare" in reason or "mount" in reason:
        return no_namespaces(reason)
    return (
        f"the kernel forbids that ({reason}); an administrator would load what is missing: "
        "`modprobe -a veth bridge sch_tbf`."
    )


def _knob() -> str | None:
    """The setting with which an administrator would allow namespaces, where one forbids them."""
    for knob, forbids, allows in _KNOBS:
        file = Path("/proc/sys", knob)
        if file.exists() and file.read_text().strip() == forbids:
            return f"{knob.replace('/', '.')}={allows}"
    return None


def no_namespaces(reason: str) -> str:
    """That the system forbids namespaces, and what to do about it. `reason`: in its own words."""
    if knob := _knob():
        return f"this system forbids namespaces; its administrator would allow them with `sysctl {knob}`."
    return (
        f"this system forbids namespaces ({reason}); its administrator would allow unprivileged user namespaces "
        "(for a container: --security-opt seccomp=unconfined --security-opt apparmor=unconfined)."
    )


def delay_obstacle() -> str | None:
    """Why latency cannot be added here; None where it can."""
    try:
        with open("/dev/net/tun", "r+b", buffering=0):
            return None
    except OSError as error:
        return f"/dev/net/tun: {error.strerror}; the administrator would `modprobe tun` and let you use it."


def possible_network(
    network: EmulatedNetwork | None, mpis_obstacle: Callable[[], str | None] = lambda: None
) -> EmulatedNetwork | None:
    """As much of the network as this system allows; prints a line about what it does not.

    Args:
        mpis_obstacle: why the MPI of the ranks allows none; None where it does.
    """
    if network is None:
        return None
    if reason := obstacle() or mpis_obstacle():
        print(f"No links here: {reason} The ranks talk inside this machine instead.")
        return None
    if network.latency and (reason := delay_obstacle()):
        print(f"No latency here: {reason} The links have their rates and nothing more.")
        return replace(network, latency=0.0)
    return network


# --- setting up -----------------------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    """What keeps MPI, gloo and NCCL on the nodes' links, and off the memory that the nodes in truth share."""
    return {
        settings.NODES.name: "1",
        "MPIR_CVAR_NOLOCAL": "1",
        "UCX_TLS": "tcp,self",
        "UCX_NET_DEVICES": "eth0",
        "UCX_RNDV_THRESH": "inf",  # no asking before a large message: a rank without a core answers late
        "UCX_TCP_TX_SEG_SIZE": "64k",
        "UCX_TCP_RX_SEG_SIZE": "128k",
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": "eth0",
        "OMPI_MCA_btl": "tcp,self",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_osc": "^sm",
        "OMPI_MCA_btl_tcp_if_include": "eth0",
        "GLOO_SOCKET_IFNAME": "eth0",
        "NCCL_NET": "Socket",
        "NCCL_SOCKET_IFNAME": "eth0",
        "NCCL_IB_DISABLE": "1",
        "NCCL_MNNVL_ENABLE": "0",
    }


def behind_links(network: EmulatedNetwork, nodes: Path, mpiexec: str, rank: list[str]) -> list[str]:
    """The command that makes the nodes and then starts the ranks.

    mpiexec and the ranks begin in the machine's own network, where the notebook is; `node.py` moves each rank.

    Args:
        nodes: an empty folder, on which the namespaces get their names.
        rank: what starts one rank; the path of its node is added to it.
    """
    command = [mpiexec]
    for node in range(len(network.rates)):
        command += [*([":"] if node else []), "-n", str(network.ranks_per_node), *rank, str(nodes / str(node))]
    enter = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-e", "-c", _PATH + _ENTER]
    return [*enter, "nodes", str(nodes), "\n".join(setup(network, nodes)), *command]


def setup(network: EmulatedNetwork, nodes: Path) -> list[str]:
    """Lines of shell that turn the network namespace they run in into the switch, and make the nodes around it."""
    switch = shlex.quote(str(nodes / "switch"))  # its name keeps it, when these lines have run
    lines = [f"touch {switch}", f"mount --bind /proc/self/ns/net {switch}"]
    lines += ["ip link set lo up", *([] if network.latency else _switch("switch"))]
    for node, rate in enumerate(network.rates):
        name = shlex.quote(str(nodes / str(node)))
        inside = [
            "ip link set lo up",
            "ip link set eth0 addrgenmode none",
            f"ip addr add {address(node)}/24 dev eth0",
            "ip link set eth0 up",
            shape_rate("eth0", rate),
            *(f"echo {value} > /proc/sys/net/ipv4/{key} || true" for key, value in (s.split("=") for s in _SYSCTLS)),
        ]
        lines += [
            f"touch {name}",
            f"unshare --net mount --bind /proc/self/ns/net {name}",
            f"ip link add v{node} type veth peer name e{node}",
            f"ip link set e{node} netns {name} name eth0",
            f"ip link set v{node} addrgenmode none",
            f"nsenter --net={name} sh -e -c {shlex.quote('; '.join(inside))}",
        ]
        if network.latency:
            lines += [*_switch(f"b{node}"), f"ip tuntap add mode tap name t{node} vnet_hdr"]
            lines += [f"ip link set t{node} addrgenmode none", f"ip link set t{node} master b{node} up"]
        switch = f"b{node}" if network.latency else "switch"
        lines += [f"ip link set v{node} master {switch} up", shape_rate(f"v{node}", rate)]
    if network.latency:
        delay = [sys.executable, "-I", str(Path(__file__).with_name("delay.py"))]
        lines.append(shlex.join([*delay, str(network.latency), str(len(network.rates))]) + " &")
    return lines


def address(node: int) -> str:
    """The node's own on its link."""
    return f"10.77.0.{node + 1}"


def _switch(name: str) -> list[str]:
    return [f"ip link add {name} type bridge", f"ip link set {name} addrgenmode none", f"ip link set {name} up"]


def shape_rate(interface: str, rate: int) -> str:
    """The line that lets no more than the rate leave an interface, with 2.6 ms to catch up after a late wake-up."""
    burst = min(max(round(rate / 8 * 0.0026), 8_000), 256_000)
    return f"tc qdisc add dev {interface} root tbf rate {rate}bit burst {burst} latency {QUEUE_SECONDS * 1e3:g}ms"
