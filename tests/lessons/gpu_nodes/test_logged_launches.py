"""Launches: where a log is cut, and how each launch ended."""

import pytest

from course_utils.lessons.gpu_nodes.failures.reading.log_parser import lines_of
from course_utils.lessons.gpu_nodes.failures.reading.logged_launches import LaunchEnding, launches_of
from course_utils.lessons.gpu_nodes.failures.recorded_logs import LOGS

FAILED, CANCELLED = LaunchEnding.FAILED, LaunchEnding.CANCELLED
ENDED_WELL, UNKNOWN = LaunchEnding.ENDED_WELL, LaunchEnding.UNKNOWN
ERROR = (
    '[rank1]: Traceback (most recent call last):\n[rank1]:   File "train.py", line 7, in <module>\n[rank1]: KeyError: 1'
)
PLAIN_ERROR = 'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\nKeyError: 1'
EXITED = "srun: error: n1: task 1: Exited with exit code 1"
BANNER = (
    "W1122 01:29:52.596000 13469 torch/distributed/run.py:874] Setting OMP_NUM_THREADS environment variable for each "
    "process to be 1 in default"
)
WANDB = "wandb: Run summary:\nwandb: train/epoch 0.52\nwandb: train/loss 1.43\nwandb: Synced 5 W&B file(s)"
COMET = (
    "COMET INFO: Metrics:\nCOMET INFO:   loss [10] : (0.1, 0.4)\nCOMET INFO:   epoch : 3\nCOMET INFO: Uploading 1 file"
)
NEPTUNE = "Shutting down background jobs, please wait a moment...\nDone!\nAll 7 operations synced, thanks for waiting!"
SYNTAX = '  File "train.py", line 232\n    optim="adam"\n    ^\nSyntaxError: invalid syntax'
MODULES = "Loaded module: python/3.11.2\nLoaded dependency [nccl/2.21]: cuda/12.4\nLoaded module: nccl/2.21"
MODULE = "Loaded module: python/3.11.2"
USAGE = "usage: sow.py [-h] [--bed {north,south}] [--deep [DEEP]]\n              [--rank RANK]"
WRONG_BED = "sow.py: error: argument --bed: invalid choice: 'west' (choose from 'north', 'south')"
NOT_DEEP = "sow.py: error: argument --deep: expected yes or no, got maybe"
WRONG_RANK = "sow.py: error: unrecognized arguments: --local-rank={}"
OPENING = "2 ranks on 1 node (n1): gloo\nreading 60000 images"


def cuts(log: str) -> list[int]:
    """The number of the first line of each launch."""
    return [launch.lines[0].number for launch in launches_of(lines_of(log))]


def endings(log: str) -> list[LaunchEnding]:
    return [launch.ending for launch in launches_of(lines_of(log))]


@pytest.mark.parametrize("log", sorted(LOGS.glob("*.log")), ids=lambda log: log.stem)
def test_a_recording_is_one_launch(log) -> None:
    (launch,) = launches_of(lines_of(log.read_text()))
    assert launch.ending is (CANCELLED if log.stem == "time_limit" else FAILED)


def test_nothing_is_no_launch() -> None:
    assert launches_of([]) == []


@pytest.mark.parametrize(
    ("log", "first_lines"),
    [
        (f"+ srun python train.py\n{ERROR}\n{EXITED}\n+ srun python train.py\n{SYNTAX}\n{EXITED}", [1, 6]),
        ("+ module load cuda\n+ srun train\nstep 1\n+ echo done", [1]),
        (f"+ torchrun train.py\n+ torchrun train.py\n{PLAIN_ERROR}", [1]),
        (f"+ torchrun train.py\n{PLAIN_ERROR}\n+ torchrun train.py\n{PLAIN_ERROR}", [1, 5]),
        (f"{BANNER}\n{BANNER}\n{ERROR}\nx.ChildFailedError:\n{BANNER}\n{ERROR}", [1, 7]),
        (f"{BANNER}\n{PLAIN_ERROR}\n{BANNER}\n{PLAIN_ERROR}\n{EXITED}", [1]),
        (f"{PLAIN_ERROR}\n{SYNTAX}\n{SYNTAX}", [1, 4]),
        (f"{SYNTAX}\n{SYNTAX}\n{EXITED}\n{SYNTAX}", [1]),
        (f"{OPENING}\nstep 1\n{ERROR}\n{EXITED}\n{OPENING}\nstep 1\n{ERROR}", [1, 8]),
        (f"{OPENING}\n{OPENING}\n{PLAIN_ERROR}\n{OPENING}\n{OPENING}\nstep 1", [1, 8]),
        (f"{OPENING}\nstep 1\n{ERROR}\n{EXITED}\nstep 2\nstep 3\nstep 4", [1]),
        (f"{OPENING}\nstep 1\nstep 2\n{OPENING}\nstep 1", [1]),
        (f"{USAGE}\n{WRONG_BED}\n{USAGE}\n{NOT_DEEP}\n{USAGE}\n{WRONG_BED[:-1]}, 'east')", [1, 4, 7]),
        (f"{USAGE}\n{WRONG_BED}\n{USAGE}\n{WRONG_BED}", [1]),
        (f"{USAGE}\n{WRONG_RANK.format(0)}\n{USAGE}\n{WRONG_RANK.format(1)}", [1]),
        (f"{USAGE}\n{USAGE}\n{WRONG_BED}\n{NOT_DEEP}", [1]),
        (f"[rank0]: {USAGE}\n[rank0]: {WRONG_BED}\n[rank1]: {USAGE}\n[rank1]: {NOT_DEEP}", [1]),
        (f"{USAGE}\nerror: Parser key bed: west\n{USAGE}\nerror: Parser key deep: maybe", [1, 4]),
        (f"{MODULE}\n{PLAIN_ERROR}\n{MODULE}\n{PLAIN_ERROR}", [1, 5]),
        (f"reading beds\n{PLAIN_ERROR}\nreading beds\n{PLAIN_ERROR}", [1]),
        (f"{MODULES}\n{PLAIN_ERROR}\n{MODULES}\n{MODULES}\n{PLAIN_ERROR}\n{MODULES}", [1, 7, 10, 16]),
        (f"{MODULES}\n{MODULES}\n{PLAIN_ERROR}\n{MODULES}\n{MODULES}\n{PLAIN_ERROR}", [1, 10]),
        (f"{OPENING}\n{PLAIN_ERROR}\n{OPENING}\n{OPENING}\n{PLAIN_ERROR}", [1, 6, 8]),
        (f"{OPENING}\nstep 1 loss 0.4\n{PLAIN_ERROR}\n{OPENING}\nstep 1 loss 0.4\nstep 2 loss 0.3", [1, 7]),
    ],
    ids=[
        "srun", "only one srun", "two nodes", "torchrun again", "torchrun's warning again",
        "torchrun's warning on a slower node", "a program that can't be read", "one that no rank can read",
        "the first lines again", "the first lines of two ranks again", "others go on", "no failure before",
        "wrong options, three times", "the same wrong option on two ranks", "an option that no rank knows",
        "two ranks with wrong options", "ranks with different wrong options", "the errors of jsonargparse",
        "only a module", "only one ordinary line", "only the modules are loaded",
        "two ranks load modules", "only the first lines come", "it goes on where the launch before failed",
    ],
)  # fmt: skip
def test_where_a_launch_begins(log: str, first_lines: list[int]) -> None:
    assert cuts(log) == first_lines


def test_a_job_that_slurm_queued_again_is_a_new_launch() -> None:
    cancelled = "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-11-22T01:22:39 DUE TO PREEMPTION ***"
    log = f"loss 0.4\n{cancelled}\nsrun: got SIGCONT\n" + "\n".join(
        f"reading part {part} of the data" for part in "abcdef"
    )
    assert cuts(log) == [1, 4] and endings(log) == [CANCELLED, UNKNOWN]
    assert cuts(f"loss 0.4\n{cancelled}\nbye\nbye") == [1]


def test_the_ranks_of_a_launch_may_repeat_its_first_lines_later() -> None:
    log = f"1: loading the model\n1: building it\n{ERROR}\n0: loading the model\n0: building it\n0: [rank0]: x"
    assert cuts(log) == [1]


@pytest.mark.parametrize(
    ("log", "ending"),
    [
        (f"step 1\n{ERROR}", FAILED),
        (f"step 1\n{PLAIN_ERROR}\n  0%|   | 0/1000 [00:29<?, ?it/s]", FAILED),
        (f"{PLAIN_ERROR}\nretrying\nstep 1 loss 0.4\nstep 2 loss 0.3\nTraining finished.", ENDED_WELL),
        (f"{ERROR}\nstep 1 loss 0.4\nstep 2 loss 0.3", FAILED),
        ("wandb: ERROR Error while calling W&B API: context deadline exceeded\nwandb: Synced 6 files", UNKNOWN),
        ("loss 0.4\n`Trainer.fit` stopped: `max_epochs=10` reached.", ENDED_WELL),
        ("100%|###| 860/860 [00:05<00:00]", ENDED_WELL),
        ("Epoch 9: 100%|###| 860/860 [00:05<00:00]", UNKNOWN),
        ("Loading weights: 100%|###| 398/398\n  0%|   | 0/2198 [00:06<?, ?it/s]", UNKNOWN),
        ("Loading checkpoint shards: 100%|###| 4/4 [00:05<00:00]", UNKNOWN),
        ("30%|#  | 3/10 [01:00<02:20]\n100%|###| 860/860 [00:05<00:00]", UNKNOWN),
        ("12%|#  | 12/100 [01:00<02:20]\nTraining finished at last: 3 of 9 folds", UNKNOWN),
        ("Job finished at Sun Nov 29 10:00:00 UTC 2026", UNKNOWN),
        (f"{PLAIN_ERROR}\nCleaning up: done\nSaved all logs\nJob finished", FAILED),
        (f"step 1\n{PLAIN_ERROR}\n{WANDB}", FAILED),
        (f"step 1\n{PLAIN_ERROR}\n{COMET}", FAILED),
        (f"step 1\n{NEPTUNE}\n{PLAIN_ERROR}\n{NEPTUNE}", FAILED),
        (f"52%|#  | 260/500\n33%|#  | 1/3\n{PLAIN_ERROR}\n52%|#  | 260/500\n33%|#  | 1/3\nTraining done", FAILED),
        (f"{PLAIN_ERROR}\n52%|#  | 260/500\n53%|#  | 265/500\n100%|###| 500/500", ENDED_WELL),
        ("0%|   | 0/2 [00:00<?]wandb: Waiting for W&B process to finish... (failed 1). Press Control-C", FAILED),
        ("loss 0.1\nwandb: Waiting for W&B process to finish... (success).\nwandb: Synced lark", ENDED_WELL),
        ("wandb: ERROR Run 7h2k errored: KeyError('beak')", FAILED),
        ("FutureWarning: x is deprecated\nstep 1", UNKNOWN),
        ("step 1", UNKNOWN),
        ("CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.\nx", UNKNOWN),
        ("step 1\nslurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-11-22T01:22:39 ***", CANCELLED),
        (f"{EXITED}\nslurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2026-11-22T01:22:39 ***", FAILED),
        (f"slurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2026-11-22T01:22:39 ***\n{EXITED}\n{ERROR}", CANCELLED),
        (
            "step 1\n/var/spool/job: line 9: 4711 Killed   python train.py\nslurmstepd: error: Detected 1 oom_kill",
            FAILED,
        ),
        ("train.py: error: unrecognized arguments: --local-rank=1", FAILED),
        ("There are not enough slots available in the system to satisfy the 8", FAILED),
        ("/bin/sh: line 3: torchrun: command not found", FAILED),
    ],
)
def test_how_a_launch_ended(log: str, ending: LaunchEnding) -> None:
    assert endings(log) == [ending]


@pytest.mark.parametrize(
    ("log", "size"),
    [
        ("step 1", 0),
        (ERROR, 0),
        ("Initialized torch.distributed (rank=1, world_size=8)", 8),
        ("rank 0 of 4 on n1: Python 3.12", 4),
        ("Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/16", 16),
        ("n1:1:2 [0] NCCL INFO comm 0x5 rank 0 nranks 6 cudaDev 0", 6),
        ("DistStoreError: Timed out after 9 seconds waiting for clients. 1/3 clients joined.", 3),
        ("srun: error: n12: tasks 0-3: Exited with exit code 1", 0),
        ("srun: error: n12: tasks 0-3: Exited with exit code 1\nsrun: Terminating job step 7.0", 4),
        ("srun: error: n12: tasks 0,2,5: Exited with exit code 1\nsrun: Terminating job step 7.0", 0),
        (f"{BANNER}\nsrun: error: n12: tasks 0-3: Killed\nsrun: Terminating job step 7.0", 0),
        ("[ada@n2 ~]$ torchrun --nproc_per_node=8 --nnodes=2 --node_rank=1 train.py\n[rank12]: x", 16),
        ("+ python3 -m torch.distributed.run --nproc-per-node 4 train.py --steps 9", 4),
        ("+ torchrun --nproc_per_node=gpu train.py", 0),
        ("+ torchrun --nnodes=1:4 --nproc_per_node=8 train.py", 0),
        ("+ srun --ntasks=2 torchrun --nproc_per_node=$GPUS train.py", 0),
        ("+ srun -N 2 --ntasks-per-node=4 python train.py -n 77", 8),
        ("$ mpirun -np 6 -H a:3,b:3 python train.py", 6),
        ("+ accelerate launch --num_processes 4 train.py", 4),
        ("Run it with torchrun --nproc_per_node=2", 0),
        (
            "[2026-03-12 08:22:45,549] torch.distributed.launcher.api: [INFO]   min_nodes        : 2\n"
            "[2026-03-12 08:22:45,549] torch.distributed.launcher.api: [INFO]   max_nodes        : 2\n"
            "[2026-03-12 08:22:45,549] torch.distributed.launcher.api: [INFO]   nproc_per_node   : 4",
            8,
        ),
        ("     Parallel version (MPI), running on    36 processors", 36),
        ("[INFO] [launch.py:163:main] dist_world_size=8", 8),
        ("the checkpoint was written with world_size=64", 0),
        ("tensor parallel world size: 2", 0),
        ("world_size=2\n[rank5]: KeyError: 1", 0),
    ],
)
def test_how_many_ranks_there_are(log: str, size: int) -> None:
    assert [launch.world_size for launch in launches_of(lines_of(log))] == [size]


def test_torchruns_attempts_are_of_one_launch() -> None:
    failed = "E1122 01:29:58.348000 13519 api.py:1002] failed (exitcode: 1) local_rank: 1 (pid: {}) of binary: python"
    (launch,) = launches_of(lines_of(f"{BANNER}\n{ERROR}\n{failed.format(7)}\nstep 1\n{ERROR}\n{failed.format(9)}"))
    assert launch.attempts == 2


def raised(name: str, line: int, processes: int) -> str:
    """The tracebacks of processes that raise at the same moment and write on each other."""
    begin = ["Traceback (most recent call last):", f'  File "train.py", line {line}, in <module>']
    return "\n".join([*begin * processes, *[f"{name}: no"] * processes])


def test_a_pile_of_tracebacks_is_several_launches() -> None:
    launcher = raised("ImportError", 3, 1).replace("train.py", "/home/ada/env/bin/torchrun")
    assert cuts("\n".join([launcher, *(raised(name, 9, 2) for name in ("KeyError", "OSError", "ValueError"))])) == [
        1, 4, 10, 16,
    ]  # fmt: skip
    assert cuts(f"{raised('KeyError', 9, 2)}\n{raised('OSError', 9, 2)}") == [1]
    assert cuts(f"{raised('KeyError', 9, 2)}\n{raised('OSError', 9, 3)}\n{raised('KeyError', 9, 2)}") == [1]
