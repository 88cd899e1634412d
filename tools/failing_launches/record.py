"""Record the failing launches of lesson 13 again: tools/failing_launches/record.py [NAME …]

Every launch runs for real on this machine; two nodes are two network or mount namespaces. It takes root, Linux's first
control groups, iproute2, util-linux and, for the time limit, Slurm. "different software" fetches an old numpy with pip
into a temporary folder. `--gpu` records those that take a GPU and no more: one is enough, where two ranks share it.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
"""Where train.py lies, the program that all launches run."""
ROOT = HERE.parent.parent
LOGS = ROOT / "course_utils" / "lessons" / "gpu_nodes" / "failures" / "logs"
BIN = Path(sys.executable).parent
HOME = "/home/ada"
ADDRESSES = ("10.1.0.11", "10.1.0.12")
LIMIT_MIB = 1024
"""Of the control group whose ranks run out of memory."""
LABELLED = "; each line begins with the number of its task, one on each node, as srun --label prints it"
FROM_DMESG = "; the last line is the kernel's and was added from dmesg"


@dataclass
class Node:
    """What one node runs, as a shell is told; `setup` stands before it and is not shown."""

    command: str
    setup: str = ""
    wrap: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


def launch(nodes: list[Node], seconds: int = 60) -> list[str]:
    """Run all nodes side by side; their lines in the order in which they came, numbered as srun --label does."""
    lines: list[str] = []

    def follow(number: int, process: subprocess.Popen) -> None:
        for line in process.stdout:
            lines.append(f"{number}: {line}".rstrip() if len(nodes) > 1 else line.rstrip())

    running = []
    for number, node in enumerate(nodes):
        script = f"set -e\necho node0{number + 1} > /proc/sys/kernel/hostname\n{node.setup}\nexec {node.command}"
        process = subprocess.Popen(
            ["timeout", "--kill-after=2", str(seconds), "unshare", "--uts", *node.wrap, "bash", "-c", script],
            cwd=HERE,
            env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **node.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        thread = threading.Thread(target=follow, args=(number, process))
        thread.start()
        running.append((process, thread))
    while all(process.poll() is None for process, _ in running):
        time.sleep(0.1)
    for process, thread in running:  # what srun does when a task fails: the others are ended soon after
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        thread.join()
    return lines


def torchrun(options: str, task: str) -> str:
    """The command line, as one types it."""
    return f"torchrun {options} train.py {task}"


def two_nodes(number: int, port: int, address: str = "127.0.0.1", per_node: int = 1, more: str = "") -> str:
    """torchrun's options on node `number` of two."""
    meeting = f"--master-addr={address} --master-port={port}{more}"
    return f"--nnodes=2 --nproc-per-node={per_node} --node-rank={number} {meeting}"


SHORT = " --rdzv-conf=timeout=8,read_timeout=8"


def rank_count() -> tuple[list[str], list[str]]:
    """Two nodes are said, one is started."""
    command = torchrun(two_nodes(0, free_port(), per_node=2, more=SHORT), "steps")
    return launch([Node(command)]), [command]


def address_in_use() -> tuple[list[str], list[str]]:
    """Somebody listens at the port already."""
    with socket.create_server(("0.0.0.0", 0)) as taken:
        command = torchrun(f"--nproc-per-node=2 --master-port={taken.getsockname()[1]}", "steps")
        return launch([Node(command)]), [command]


def mismatched_collectives() -> tuple[list[str], list[str]]:
    """Rank 0 calls all_reduce, rank 1 broadcast; PyTorch is asked to compare."""
    command = torchrun(f"--nproc-per-node=2 --master-port={free_port()}", "collectives")
    lines = launch([Node(command, environment={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})])
    return lines, [f"TORCH_DISTRIBUTED_DEBUG=DETAIL {command}"]


def out_of_memory() -> tuple[list[str], list[str]]:
    """A rank grows until the kernel ends it; the kernel's own lines stand behind."""
    group = Path(f"/sys/fs/cgroup/memory/course-failures-{os.getpid()}")
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(f"{LIMIT_MIB}M")
        command = torchrun(f"--nproc-per-node=2 --master-port={free_port()}", "memory 200")
        lines = launch([Node(command, setup=f"echo $$ > {group}/cgroup.procs")])
        kernel = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout.splitlines()
        killed = [line for line in kernel if "Memory cgroup out of memory" in line][-1:]
    finally:
        group.rmdir()
    return [*lines, *killed], [f"{command}  # in a control group with {LIMIT_MIB} MiB", "dmesg | grep 'out of memory'"]


def allocator() -> tuple[list[str], list[str]]:
    """A rank asks for more than `ulimit -v` leaves it."""
    command = torchrun(f"--nproc-per-node=2 --master-port={free_port()}", "memory 40000")
    return launch([Node(command, setup="ulimit -v 12000000")]), ["ulimit -v 12000000", command]


def different_software() -> tuple[list[str], list[str]]:
    """The second node has an older numpy, which cannot read what the first one sends."""
    port = free_port()
    commands = [torchrun(two_nodes(number, port), "software") for number in range(2)]
    with tempfile.TemporaryDirectory() as old:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", old, "numpy==1.25.2"]
        subprocess.run(pip, check=True)
        nodes = [Node(commands[0]), Node(commands[1], environment={"PYTHONPATH": old})]
        lines = [line.replace(old, f"{HOME}/old") for line in launch(nodes)]
    return lines, [commands[0], f"PYTHONPATH={HOME}/old {commands[1]}  # numpy 1.25.2"]


def no_shared_files() -> tuple[list[str], list[str]]:
    """Both nodes have a folder of that name, each its own."""
    port = free_port()
    commands = [torchrun(two_nodes(number, port), "checkpoint /mnt/runs") for number in range(2)]
    own = "mount -t tmpfs none /mnt; mkdir /mnt/runs"
    return launch([Node(command, setup=own, wrap=("--mount",)) for command in commands]), commands


def unreachable() -> tuple[list[str], list[str]]:
    """Two nodes of one network that no packet crosses."""
    commands = [torchrun(two_nodes(number, 29500, ADDRESSES[0], more=SHORT), "steps") for number in range(2)]
    nodes = []
    for command, address in zip(commands, ADDRESSES):
        cable = "ip link set lo up; ip link add eth0 type veth peer name far"  # its far end leads nowhere
        setup = f"{cable}; ip addr add {address}/24 dev eth0; ip link set eth0 up"
        nodes.append(Node(command, setup=setup, wrap=("--net",)))
    return launch(nodes), commands


def time_limit() -> tuple[list[str], list[str]]:
    """A job of one minute that needs ten."""
    sys.path.insert(0, str(ROOT / "tests"))
    from slurm_here import slurm_here, wait_until

    from course_utils.lessons.gpu_nodes.slurm_script import slurm_script

    os.environ["PATH"] = f"{BIN}:{os.environ['PATH']}:/usr/sbin"
    with slurm_here() as slurm:
        script = slurm.folder / "train.sh"
        command = f"torchrun --nproc-per-node=1 --master-port={free_port()} train.py steps 60 10"
        script.write_text(
            slurm_script(command, nodes=1, tasks_per_node=1, minutes=1, warn_seconds=1).replace(
                "#SBATCH --signal=TERM@1\n", ""
            )
        )
        out = slurm.folder / "train.out"
        number = slurm.call("sbatch", "--parsable", f"--chdir={HERE}", f"--output={out}", str(script)).strip()
        wait_until(lambda: not slurm.call("squeue", "--noheader", f"--jobs={number}").strip(), 200)
        return out.read_text().splitlines(), [f"sbatch train.sh  # --time=1; srun {command}"]


def wrong_gpu_binding() -> tuple[list[str], list[str]]:
    """Nobody chose a GPU, so both ranks take the first."""
    return on_gpu("gpu_steps first", NCCL_DEBUG="WARN")


def device_ordinal() -> tuple[list[str], list[str]]:
    """Each rank takes the GPU of its local rank, and there is one for two."""
    return on_gpu("gpu_steps")


def nccl_interface() -> tuple[list[str], list[str]]:
    """NCCL is told a network interface that this node does not have."""
    return on_gpu("gpu_steps first", NCCL_DEBUG="INFO", NCCL_SOCKET_IFNAME="ib9")


def gpu_out_of_memory() -> tuple[list[str], list[str]]:
    """A GPU is full."""
    return on_gpu("gpu_memory", ranks=1)


def illegal_access() -> tuple[list[str], list[str]]:
    """A label is not a class."""
    return on_gpu("gpu_labels", ranks=1)


def collective_timeout() -> tuple[list[str], list[str]]:
    """A rank leaves out an all-reduce; NCCL's watchdog ends the others."""
    flight = {"TORCH_FR_BUFFER_SIZE": "2000", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1"}
    return on_gpu("gpu_skip", hidden={"SHARE_A_GPU": "1", **flight})


def nccl_start() -> tuple[list[str], list[str]]:
    """No failure: what NCCL says of a start that goes well."""
    return on_gpu("gpu_steps first", NCCL_DEBUG="INFO", hidden={"SHARE_A_GPU": "1"})


def on_gpu(
    task: str, ranks: int = 2, hidden: dict[str, str] | None = None, **shown: str
) -> tuple[list[str], list[str]]:
    """A launch with variables that are part of the command line, and some that are not shown."""
    command = torchrun(f"--nproc-per-node={ranks} --master-port={free_port()}", task)
    lines = launch([Node(command, environment=shown | (hidden or {}))], seconds=75)
    return lines, [" ".join([*(f"{name}={value}" for name, value in shown.items()), command])]


def free_port() -> int:
    """A port of loopback on which nobody listens now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def neutral(text: str) -> str:
    """Without this machine's paths and names."""
    for ours, theirs in (
        (str(BIN.parent), f"{HOME}/venv"),
        (str(HERE), f"{HOME}/train"),
        (str(ROOT), f"{HOME}/course"),
    ):
        text = text.replace(ours, theirs)
    return re.sub(rf"(?<![\w-]){re.escape(socket.gethostname())}(?![\w-])", "node01", text)


INSIDE = re.compile(r'^(?:\d+: )?(?:\[rank\d+\]: ?)?(?:  File "[^"]*/(?:lib|bin)/|frame #\d+: )')
"""Lines of a stack that belong to PyTorch and Python, not to the program."""
BELOW = re.compile(r"^(?:\d+: )?(?:\[rank\d+\]: ?)?    ")


def trimmed(lines: list[str]) -> list[str]:
    """The log with the inner part of each stack left out, and a line that says how many lines that were."""
    kept: list[str] = []
    left_out = 0
    for line in lines:
        if INSIDE.match(line) or (left_out and BELOW.match(line)):
            left_out += 1
            continue
        if left_out:
            kept.append(f"    [{left_out} lines inside Python and PyTorch left out]")
        left_out = 0
        kept.append(line)
    return kept


RECORDINGS = {
    "wrong rank count": rank_count,
    "address in use": address_in_use,
    "mismatched collectives": mismatched_collectives,
    "out of memory": out_of_memory,
    "different software": different_software,
    "no shared files": no_shared_files,
    "time limit": time_limit,
    "unreachable node": unreachable,
    "out of memory (allocator)": allocator,
}

ON_A_GPU = {
    "wrong GPU binding": wrong_gpu_binding,
    "wrong GPU binding (ordinal)": device_ordinal,
    "NCCL interface": nccl_interface,
    "out of memory (GPU)": gpu_out_of_memory,
    "illegal memory access": illegal_access,
    "collective timeout": collective_timeout,
    "NCCL (start)": nccl_start,
}
HEALTHY = ("NCCL (start)",)
"""Those that do not fail."""
SHARED = ("collective timeout", "NCCL (start)")
"""In which two ranks share a GPU."""


def record(name: str, out: Path | None = None) -> None:
    """Write NAME.log and NAME.json; a variant, with brackets in its name, goes to the tests.

    Args:
        out: both go into this folder instead.
    """
    lines, commands = (RECORDINGS | ON_A_GPU)[name]()
    folder = out or LOGS
    if out is None and name in HEALTHY:
        folder = LOGS.parent.parent / "recorded"
    elif out is None and "(" in name:
        folder = ROOT / "tests" / "lessons" / "gpu_nodes" / "failures"
    folder.mkdir(exist_ok=True)
    file = folder / re.sub(r"\W+", "_", name.lower()).strip("_")
    versions = {"python": platform.python_version()} | {p: importlib.metadata.version(p) for p in ("torch", "numpy")}
    if name in ON_A_GPU:
        versions |= gpu_versions()
    if name == "time limit":
        versions["slurm"] = subprocess.run(
            ["slurmctld", "-V"], capture_output=True, text=True, check=True
        ).stdout.split()[-1]
    facts = {
        "failure": name,
        "commands": [neutral(command) for command in commands],
        "versions": versions,
        "recorded": f"{datetime.now(UTC):%Y-%m-%d}",
        "changed": "paths, the host's name; stack traces are shortened"
        + (LABELLED if sum("--node-rank" in command for command in commands) > 1 else "")
        + (FROM_DMESG if any(command.startswith("dmesg") for command in commands) else "")
        + ("; two ranks share a GPU, each told to be a node of its own" if name in SHARED else ""),
    }
    file.with_suffix(".log").write_text("\n".join(trimmed([neutral(line) for line in lines])) + "\n")
    file.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n")
    print(f"{name}: {len(lines)} lines; {shlex.join(commands[:1])}", flush=True)


def gpu_versions() -> dict[str, str]:
    """What a launch on a GPU depends on."""
    import torch

    nccl = ".".join(map(str, torch.cuda.nccl.version()))
    return {"CUDA": torch.version.cuda, "NCCL": nccl, "GPU": torch.cuda.get_device_name()}


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("names", nargs="*", help="those alone")
    asked.add_argument("--gpu", action="store_true", help="those that take a GPU")
    asked.add_argument("--out", type=Path, help="a folder for what is recorded")
    asked = asked.parse_args()
    for chosen in asked.names or (ON_A_GPU if asked.gpu else RECORDINGS):
        record(chosen, asked.out)
