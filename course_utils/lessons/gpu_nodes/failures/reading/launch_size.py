"""How many ranks a launch has, if its log tells."""

import re
from collections.abc import Iterator, Sequence

from course_utils.lessons.gpu_nodes.failures.exit_codes import tasks_of
from course_utils.lessons.gpu_nodes.failures.log_line import Line
from course_utils.lessons.gpu_nodes.failures.reading.writers import message_of

_SIZE = re.compile(
    r"(?<!parallel )(?<!parallel-)(?<!local )(?<!group )\b(?:dist_|global_)?world[_ ]?size\W{1,4}(\d{1,6})\b"
    r"|\bnranks (\d{1,6})\b|\brank \d+ of (\d{1,6})\b"
    r"|MEMBER: \d+/(\d{1,6})\b|\[rank \d+/(\d{1,6})\]|\d+/(\d{1,6}) clients joined|Starting with (\d{1,6}) processes"
    r"|Parallel version \(MPI\), running on +(\d{1,6})\b|\bnumber of MPI (?:processes|ranks|tasks)\W+(\d{1,6})\b",
    re.IGNORECASE,
)
_OF_A_DIFFERENT_RUN = re.compile(r"checkpoint|\bckpt|saved|resum|previous|was trained|load(?:ed|ing)", re.IGNORECASE)
_BESIDE_A_SIZE = (
    "orld", "ORLD", "nranks", " of ", "MEMBER", "ank ", "joined", "Starting", "srun", "MPI", "run", "launch",
    "deepspeed", "mpiexec", "nodes", "nproc",
)  # fmt: skip
_COMMAND = re.compile(
    r"(?:\++ |\S*[\])\w~/]?[$#%>] |\[[^\]]+\][$#] )?(?:\w+=\S+ )*(?:\S*/)?"
    r"(?P<launcher>torchrun|python[\d.]* -m torch\.distributed\.(?:run|launch)|mpirun|mpiexec|horovodrun|srun"
    r"|accelerate launch|deepspeed)(?P<options> .*)"
)
"""A command that the shell repeats, or that was typed at a prompt."""
_OPTION = re.compile(r"--?([\w-]+)[= ](\S+)|-(n|np|N)(\d+)")
_TORCHRUN = ("torchrun", "torch.distributed")
_RANKS = {"mpirun": ("n", "np"), "mpiexec": ("n", "np"), "horovodrun": ("np", "num-proc"), "srun": ("n", "ntasks")}
"""The options of a launcher that give the number of ranks."""
_CONFIG = re.compile(r"^(?:.*\]| )\s*(min_nodes|max_nodes|nproc_per_node) +: (\d+)$")
"""torchrun writes its options if it is asked to log more."""
_TASKS = re.compile(r"srun: error: \S+: tasks? ([\d,-]+):")
_STEP_ENDS = re.compile(r"srun: (?:Terminating job step|Job step aborted|Force Terminated)|\*\*\* STEP \S+ ON")
"""After this, srun names all tasks."""
_LAUNCHERS_IN_TASKS = re.compile(r"torch[./]distributed[./](?:run|elastic|launch)|torchrun")


def size_of(lines: Sequence[Line]) -> int:
    """The number of ranks that the program, NCCL, a launcher or its command names; 0 if none of them does.

    It is also 0 if a rank has a higher number than there is room for.
    """
    commands: set[int] = set()
    spoken = 0
    config: dict[str, int] = {}
    for line in lines:
        if not any(word in line.text for word in _BESIDE_A_SIZE):
            continue
        text = message_of(line.text)
        if found := _COMMAND.match(text):
            commands.add(_size_in_command(found["launcher"], found["options"]))
        elif found := _CONFIG.match(text):
            config[found[1]] = int(found[2])
        elif (found := _SIZE.search(text)) and not _OF_A_DIFFERENT_RUN.search(text):
            spoken = max(spoken, int(next(filter(None, found.groups()))))
    if config.get("min_nodes") == config.get("max_nodes"):
        commands.add(config.get("max_nodes", 0) * config.get("nproc_per_node", 0))
    commands.discard(0)
    in_commands = commands.pop() if len(commands) == 1 else 0
    size = in_commands or spoken or _tasks(lines)
    return size if size >= least_size_of(lines) else 0


def least_size_of(lines: Sequence[Line]) -> int:
    """So many ranks there are at least: up to the highest that writes."""
    return max((line.rank + 1 for line in lines if line.rank is not None), default=0)


def _size_in_command(launcher: str, text: str) -> int:
    """The number of ranks that a command starts, or 0 if it does not give it as a number."""
    options = {name.replace("_", "-"): value for name, value in _options(text)}
    if any(name in launcher for name in _TORCHRUN):
        nodes, processes = options.get("nnodes", "1"), options.get("nproc-per-node", "")
        return _number(nodes) * _number(processes)
    if launcher == "accelerate launch":
        return _number(options.get("num-processes", ""))
    if launcher == "deepspeed":
        return _number(options.get("num-nodes", "1")) * _number(options.get("num-gpus", ""))
    if any(name in text for name in (*_TORCHRUN, "accelerate launch", "deepspeed")):
        return 0  # each task is a launcher
    if launcher == "srun" and (nodes := options.get("nodes", options.get("N"))) and "ntasks-per-node" in options:
        return _number(nodes) * _number(options["ntasks-per-node"])
    return next((_number(options[name]) for name in _RANKS[launcher] if name in options), 0)


def _options(text: str) -> Iterator[tuple[str, str]]:
    """Yield the options of a command up to the name of its program."""
    for found in _OPTION.finditer(text.split(".py", 1)[0]):
        yield (found[1], found[2]) if found[1] else (found[3], found[4])


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else 0


def _tasks(lines: Sequence[Line]) -> int:
    """The number of tasks, if srun names all from 0 to the last as it ends them."""
    named: set[int] = set()
    is_complete = False
    for line in lines:
        if _LAUNCHERS_IN_TASKS.search(line.text):
            return 0
        is_complete = is_complete or _STEP_ENDS.search(line.text) is not None
        if found := _TASKS.search(line.text):
            named.update(tasks_of(found[1]))
    return len(named) if is_complete and named == set(range(len(named))) else 0
