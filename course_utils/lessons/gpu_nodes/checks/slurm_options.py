"""The options of `sbatch` and `srun`, read as these programs read them.

Both call C's `getopt_long`, of which Python's `getopt` is the port. `argparse` would read some words differently: it
takes `-N=2` for two nodes, and in `--exclusive --hint=nomultithread` it could not tell an option from a value.

Source: `man sbatch` and `man srun` of Slurm 22.05, and what later versions up to 25.05 have added.
"""

import getopt
from collections.abc import Sequence
from dataclasses import dataclass


class UnknownOption(ValueError):
    """A program of Slurm's would reject these options; the text says which, and why."""


@dataclass(frozen=True)
class KnownOptions:
    """What options a program has, each as `letter:name`, or as `name` where it has no letter.

    Attributes:
        program: its name.
        with_value: need a value.
        may_have_value: take a value only behind `=`, or right behind the letter.
        flags: take none.
    """

    program: str
    with_value: str
    may_have_value: str
    flags: str

    def read(self, words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
        """Read the options at the beginning of `words`: `--time=5`, `--time 5`, `-t 5`, `-t5`.

        A long name may be cut short if no other begins with the same letters: `--part=gpu`.

        Returns:
            The value of each, by its long name, "" where it has none; and the words behind the options.

        Raises:
            UnknownOption: an option that the program does not have, or one without the value that it needs.
        """
        with_value, may_have, flags = (_names(text) for text in (self.with_value, self.may_have_value, self.flags))
        letters = "".join(f"{letter}:" for letter in with_value if letter in _LETTERS)
        letters += "".join(letter for letter in flags | may_have if letter in _LETTERS)
        long = [f"{name}=" for name in (with_value | may_have).values()] + [*flags.values()]
        try:
            found, rest = getopt.getopt([_with_sign(word, may_have) for word in words], letters, long)
        except getopt.GetoptError as error:
            raise UnknownOption(f"{self.program}: error: {error.msg}") from error
        names = with_value | may_have | flags
        behind = list(words[len(words) - len(rest) :])
        return {names.get(option[1:], option[2:]): value for option, value in found}, behind


_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def _names(text: str) -> dict[str, str]:
    """Letter, or name where there is none → name."""
    pairs = [word.rpartition(":") for word in text.split()]
    return {letter or name: name for letter, _, name in pairs}


def _with_sign(word: str, may_have_value: dict[str, str]) -> str:
    """The word; with a `=`, and so an empty value, if it is an option that may stand without any.

    `getopt` knows such options only from Python 3.14 on.
    """
    letter = word[1:2]
    if letter in may_have_value and not word.startswith("--"):
        return f"--{may_have_value[letter]}={word[2:]}"
    return f"{word}=" if word.startswith("--") and word[2:] in may_have_value.values() else word


_OF_BOTH = """
    A:account acctg-freq bb bbf b:begin D:chdir cluster-constraint M:clusters comment C:constraint container
    container-id S:core-spec cores-per-socket cpu-freq cpus-per-gpu c:cpus-per-task deadline delay-boot d:dependency
    m:distribution e:error x:exclude export extra B:extra-node-info gid gpu-bind gpu-freq G:gpus gpus-per-node
    gpus-per-socket gpus-per-task gres gres-flags hint i:input J:job-name L:licenses mail-type mail-user mcs-label mem
    mem-bind mem-per-cpu mem-per-gpu mincpus network F:nodefile w:nodelist N:nodes n:ntasks ntasks-per-core
    ntasks-per-gpu ntasks-per-node ntasks-per-socket oom-kill-step open-mode o:output p:partition power prefer priority
    profile q:qos reservation segment signal sockets-per-node switches tasks-per-node thread-spec threads-per-core
    t:time time-min tmp tres-bind tres-per-task uid wckey
"""
_FLAGS_OF_BOTH = """
    consolidate-segments contiguous h:help H:hold O:overcommit s:oversubscribe Q:quiet reboot spread-job spread-segments
    stepmgr test-only usage use-min-nodes v:verbose V:version
"""
SBATCH = KnownOptions(
    "sbatch",
    _OF_BOTH + "a:array batch export-file kill-on-invalid-dep wait-all-nodes wrap",
    "exclusive get-user-env nice k:no-kill propagate resv-ports",
    _FLAGS_OF_BOTH + "ignore-pbs no-requeue parsable requeue W:wait",
)
SRUN = KnownOptions(
    "srun",
    _OF_BOTH
    + """
    accel-bind bcast-exclude cpu-bind epilog het-group jobid mpi msg-timeout prolog r:relative slurmd-debug task-epilog
    task-prolog T:threads W:wait
    """,
    "bcast compress exclusive external-launcher I:immediate K:kill-on-bad-exit nice k:no-kill propagate resv-ports "
    "send-libs x11",
    _FLAGS_OF_BOTH
    + "X:disable-status exact l:label multi-prog Z:no-allocate overlap E:preserve-env pty quit-on-interrupt "
    "u:unbuffered",
)
