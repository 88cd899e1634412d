"""Run a command as on a Mac, simulated on Linux: `python tests/install/mac/as_on_a_mac.py COMMAND …`.

For all that runs in it, /proc and /sys are empty but for what MPICH and torch ask a Mac's kernel, the machine's name
resolves to nothing, and the network is lo0 and an en0 that leads nowhere. Temporary files lie in a folder with a long
path below /var/folders. MPICH uses libfabric, as its wheel for Macs does. Python lacks, in every process, what it lacks
on a Mac (`sitecustomize.py`), spawns where it would fork, and the course believes that it is on a Mac. psutil alone may
ask the system, in a Mac's kernel's place.

Made by bubblewrap and unshare; when the command ends, whatever it has started ends too.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TEMPORARY = "/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T"
_CPUS, _CPU_INFO = "/sys/devices/system/cpu", "/proc/cpuinfo"
_CACHES = f"{_CPUS}/cpu0/cache"
_NAME = "Annas-Mac.local"
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_INTERFACES = (
    "ip link set lo name lo0; ip link set lo0 up; ip link add en0 type veth peer name en1; ip link set en1 up; "
    'ip addr add 192.0.2.7/24 dev en0; ip link set en0 up; exec "$@"'
)


def command(inside: list[str], scratch: Path) -> list[str]:
    """The command that runs another as on a Mac.

    Args:
        scratch: an empty folder, for what only the session needs.
    """
    for name in ("proc", "home"):
        (scratch / name).mkdir()
    (scratch / "hosts").write_text("127.0.0.1 localhost\n")
    devices = [word for name in _DEVICES for word in ("--dev-bind", f"/dev/{name}", f"/dev/{name}")]
    box = ["bwrap", "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", _NAME]
    box += ["--dev-bind", "/", "/", "--proc", str(scratch / "proc"), "--tmpfs", "/proc", "--tmpfs", "/sys"]
    for path in (_CPUS, _CPU_INFO):  # for MPICH's hwloc and for torch, which ask a Mac's kernel there
        box += ["--ro-bind", path, path]
    if os.path.exists(_CACHES):
        box += ["--tmpfs", _CACHES]
    box += ["--tmpfs", "/dev", *devices, "--symlink", f"{scratch}/proc/self/fd", "/dev/fd", "--tmpfs", "/dev/shm"]
    box += ["--tmpfs", "/var", "--dir", TEMPORARY]
    box += ["--ro-bind", str(scratch / "hosts"), "/etc/hosts"]
    network = ["unshare", "--user", "--map-root-user", "--net", "sh", "-e", "-c", _INTERFACES, "as-on-a-mac"]
    return [*network, *box, "--", *inside]


def environment(scratch: Path) -> dict[str, str]:
    """That of a command in the session."""
    kept = ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "CI", "COURSE_DATA", "COURSE_SEED", "COURSE_OFFLINE")
    own = {name: os.environ[name] for name in kept if name in os.environ}
    return own | {
        "HOME": str(scratch / "home"),
        "TMPDIR": TEMPORARY,
        "MAC_PROC": str(scratch / "proc"),
        "PYTHONPATH": str(Path(__file__).parent),
        "MPIR_CVAR_CH4_NETMOD": "ofi",
    }


def run(inside: list[str], seconds: float | None = None, **options) -> subprocess.CompletedProcess:
    """Run a command as on a Mac; what it prints comes back as text unless told otherwise."""
    with tempfile.TemporaryDirectory(prefix="course-mac-") as scratch:
        return subprocess.run(
            command(inside, Path(scratch)),
            env=environment(Path(scratch)),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=seconds,
            check=False,
            **options,
        )


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]).returncode)
