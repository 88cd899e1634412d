"""The training program and what it stands on: launchers found out, seats compared, checkpoints, stops, and torchrun."""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from course_utils.errors import CourseError
from course_utils.gpu_seats import Seat
from course_utils.lessons.gpu_nodes import checkpoint, launch, resumable_training
from course_utils.lessons.gpu_nodes.checkpoint import load_checkpoint, save_checkpoint
from course_utils.lessons.gpu_nodes.failures.readable_log import readable
from course_utils.lessons.gpu_nodes.launch import Launch, find_launch, first_node, seats_text
from course_utils.lessons.gpu_nodes.slurm_script import slurm_script
from course_utils.lessons.gpu_nodes.stop_signals import ON_GPUS, TRY_AGAIN, Interrupted, StopSignals
from course_utils.lessons.gpu_nodes.torchrun_script import torchrun_script
from course_utils.lessons.gpu_nodes.train_ddp import Settings, settings_from, train_ddp

TORCHRUN = {
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "MASTER_ADDR": "n1",
    "MASTER_PORT": "2000",
    "TORCHELASTIC_RESTART_COUNT": "1",
}
SBATCH = {"SLURM_JOB_ID": "10007", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_JOB_NODELIST": "gpu[07-09]"}
SRUN = {**SBATCH, "SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_STEP_NUM_TASKS": "6", "SLURM_RESTART_COUNT": "2"}


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """As under torchrun: several threads on a busy machine wait for each other at every small product."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, Launch("alone", 0, 1, 0)),
        (TORCHRUN, Launch("torchrun", 5, 8, 1, "n1:2000", 1)),
        (SRUN, Launch("srun", 3, 6, 1, "gpu07:20007", 2)),
        (SRUN | {"SLURM_STEP_NODELIST": "gpu09"}, Launch("srun", 3, 6, 1, "gpu09:20007", 2)),
        (SRUN | {"MASTER_ADDR": "ib7", "MASTER_PORT": "9"}, Launch("srun", 3, 6, 1, "ib7:9", 2)),
        (SRUN | {"PMI_SIZE": "6"}, Launch("srun", 3, 6, 1, "gpu07:20007", 2)),
        (SRUN | TORCHRUN, Launch("torchrun", 5, 8, 1, "n1:2000", 3)),
        (SBATCH | {"SLURM_NTASKS": "6"}, Launch("alone", 0, 1, 0)),
    ],
    ids=["alone", "torchrun", "srun", "step", "told", "srun-pmi", "torchrun-in-srun", "batch-script"],
)
def test_every_launcher_is_understood(environment, found) -> None:
    assert find_launch(environment) == found


def test_processes_of_mpiexec_are_told_that_they_would_train_alone() -> None:
    with pytest.raises(CourseError, match="MPI started 4 processes, and each of them would train alone"):
        find_launch({"PMI_SIZE": "4"})


def test_tries_of_torchrun_do_not_meet_at_the_same_place(monkeypatch) -> None:
    def attempt(restarts: int, nodes: int, own_store: str = "") -> str:
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", str(restarts))
        monkeypatch.setenv("GROUP_WORLD_SIZE", str(nodes))
        monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", own_store)
        return launch._attempt()

    assert attempt(0, 1) != attempt(1, 1)
    assert attempt(0, 2, "1") == attempt(1, 2, "1"), "torchruns of several nodes count unlike tries"
    attempt(0, 2)
    with pytest.raises(CourseError, match="export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"):
        attempt(1, 2)


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("c1", "c1"),
        ("c1,c2", "c1"),
        ("gpu[01-04,07],fat1", "gpu01"),
        ("n[7,9]-ib", "n7-ib"),
        ("a-b.site[3]", "a-b.site3"),
    ],
)
def test_the_first_node_of_a_list(nodes, first) -> None:
    assert first_node(nodes) == first


def test_what_is_no_list_of_nodes_is_rejected() -> None:
    with pytest.raises(CourseError, match="is not a list of nodes"):
        first_node("[1-3]")


def test_the_line_says_who_trains_over_what() -> None:
    assert seats_text(["n1", "n1", "n2"], "srun", "NCCL, H100") == (
        "3 ranks on 2 nodes (n1, n2), started by srun: NCCL, H100"
    )
    reason = "gloo, because machine-17 has 1 GPU for 2 ranks, and NCCL wants one for each"
    long = seats_text(["machine-17", "machine-17"], "torchrun", reason)
    assert readable(long).replace("\n ", "").endswith(reason), "on a page nothing of the reason is cut off"


def test_nccl_that_cannot_serve_is_rejected_only_where_it_was_asked_for(monkeypatch, capsys) -> None:
    monkeypatch.setattr(launch, "own_seat", lambda: Seat("n1"))
    with launch.process_group(Launch("alone", 0, 1, 0)) as group:
        assert (group.backend, group.device, group.gradients) == ("gloo", torch.device("cpu"), None)
    assert "gloo, because there is no GPU" in capsys.readouterr().out
    with (
        pytest.raises(CourseError, match=r'backend="nccl" is not possible here: there is no GPU\.'),
        launch.process_group(Launch("alone", 0, 1, 0), backend="nccl"),
    ):
        pass
    torch.distributed.destroy_process_group()


def test_a_checkpoint_is_the_old_one_or_the_new_one(tmp_path, monkeypatch) -> None:
    file = tmp_path / "new" / "checkpoint.pt"
    assert load_checkpoint(file) is None
    save_checkpoint(file, {"steps": 1, "weights": torch.ones(3)})

    def half(content: object, stream) -> None:
        stream.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(checkpoint.torch, "save", half)
    with pytest.raises(OSError, match="no space"):
        save_checkpoint(file, {"steps": 2})
    assert load_checkpoint(file)["steps"] == 1


def test_the_command_line_has_a_switch_for_every_setting() -> None:
    assert settings_from(["--folder", "a"]) == Settings("a")
    given = settings_from(["--folder=a", "--epochs=2", "--bf16", "--compile", "--batch-size=32", "--dropout=0.5"])
    assert given == Settings("a", epochs=2, bf16=True, compile=True, batch_size=32, dropout=0.5)


def ends_early(monkeypatch, at: int) -> None:
    """The signal comes in the middle of that step."""
    inner, steps = resumable_training.train_step, []

    def step(*arguments) -> None:
        inner(*arguments)
        steps.append(1)
        if len(steps) == at:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(resumable_training, "train_step", step)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_stopped_in_the_middle_of_an_epoch_it_ends_as_if_it_had_not_been(tmp_path, monkeypatch, dropout) -> None:
    whole = train_ddp(Settings(str(tmp_path / "whole"), 2, dropout=dropout))
    settings = Settings(str(tmp_path / "parts"), 2, dropout=dropout)
    before = signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patch:
        ends_early(patch, 30)
        with pytest.raises(Interrupted, match=r"Stopped after step 30: SIGTERM\. The checkpoint is .*checkpoint\.pt"):
            train_ddp(settings)
    assert signal.getsignal(signal.SIGTERM) is before
    parts = train_ddp(settings)
    assert parts.resumed_at == 30 and parts.steps == whole.steps == 44
    assert parts.losses == pytest.approx(whole.losses, rel=1e-6)
    assert train_ddp(settings).steps == 44, "a training that is over only says so"


def test_another_training_is_not_gone_on_with(tmp_path) -> None:
    train_ddp(Settings(str(tmp_path), 1))
    with pytest.raises(CourseError, match="belongs to a training with batch_size=64, not 32. Take the same settings"):
        train_ddp(Settings(str(tmp_path), 2, batch_size=32))
    (tmp_path / "checkpoint.pt").write_bytes(b"half")
    with pytest.raises(CourseError, match=r"cannot be read .*Remove it, and the training begins anew"):
        train_ddp(Settings(str(tmp_path), 2))


def test_bfloat16_comes_near_and_is_not_the_same(tmp_path) -> None:
    exact, rough = (train_ddp(Settings(str(tmp_path / str(bf16)), 2, bf16=bf16)).loss for bf16 in (False, True))
    assert rough != exact
    assert rough == pytest.approx(exact, rel=0.1)


def test_torch_compile_gets_the_whole_network(tmp_path, monkeypatch) -> None:
    inner, multiplications = torch.compile, []

    def compiler(graph, _) -> object:
        multiplications.append(sum("linear" in str(node.target) for node in graph.graph.nodes))
        return graph.forward

    monkeypatch.setattr(torch, "compile", lambda module: inner(module, backend=compiler))
    plain, compiled = (train_ddp(Settings(str(tmp_path / str(one)), 1, compile=one)) for one in (False, True))
    assert multiplications == [3]
    assert compiled.losses == pytest.approx(plain.losses, rel=1e-4)


def test_where_gpus_train_ranks_agree_after_every_tenth_step(monkeypatch) -> None:
    agreements = []
    monkeypatch.setattr(dist, "all_reduce", lambda flag, op: agreements.append(flag.item()))
    stop = StopSignals(ON_GPUS)
    said = []
    for step in range(1, 21):
        if step == 12:
            stop.heard = "SIGTERM"
        said.append(stop.agreed())
    assert agreements == [0.0, 1.0], "two in twenty steps"
    assert said == [False] * 19 + [True]


def test_a_signal_is_remembered_and_ends_nothing() -> None:
    with StopSignals() as stop:
        assert stop.heard == ""
        os.kill(os.getpid(), signal.SIGUSR1)
        assert stop.heard == "SIGUSR1"


def torchrun(folder: Path, *options: str) -> subprocess.CompletedProcess:
    """Two workers on this machine, started again once where one fails."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1"]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*command, inspect.getfile(train_ddp), f"--folder={folder}", *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.long
def test_torchrun_starts_again_after_a_worker_is_killed_and_ends_with_the_same_loss(tmp_path) -> None:
    alone = train_ddp(Settings(str(tmp_path / "alone"), 3))
    ended = torchrun(tmp_path / "two", "--epochs=3", "--die-at=50")
    assert ended.returncode == 0, ended.stderr[-3000:]
    lines = ended.stdout.splitlines()
    assert lines.count("rank 1 kills itself after step 50, as --die-at says") == 1
    assert f"resumes after step 40, from {tmp_path}/two/checkpoint.pt" in lines
    result = json.loads(lines[-1].removeprefix("done: "))
    assert len(result["nodes"]) == 2 and result["resumed_at"] == 40
    assert result["losses"] == pytest.approx(alone.losses, rel=1e-4)


def lines_of(text: str) -> list[str]:
    """What sbatch is asked for."""
    return [line.removeprefix("#SBATCH --") for line in text.splitlines() if line.startswith("#SBATCH")]


def test_a_batch_script_asks_for_a_task_on_every_gpu() -> None:
    text = slurm_script("python train.py", nodes=2, gpus_per_node=4, minutes=30, memory="64G", cores_per_task=8)
    asked = dict(line.partition("=")[::2] for line in lines_of(text))
    assert {"nodes": "2", "ntasks-per-node": "4", "gpus-per-node": "4", "cpus-per-task": "8"}.items() <= asked.items()
    assert {"time": "30", "mem": "64G", "signal": "TERM@60", "requeue": ""}.items() <= asked.items()
    assert "partition=gpu" in lines_of(slurm_script("python train.py", partition="gpu"))
    assert not re.search("gpus-per-node|mem|partition", slurm_script("python train.py"))


@pytest.mark.parametrize("status", [0, 1, TRY_AGAIN])
def test_a_batch_script_queues_again_what_was_stopped(tmp_path, status) -> None:
    (tmp_path / "srun").write_text(f"#!/bin/sh\necho $MASTER_ADDR $MASTER_PORT >> called\nexit {status}\n")
    (tmp_path / "scontrol").write_text('#!/bin/sh\n[ "$1" = show ] && echo n1 && echo n2 || echo $@ >> called\n')
    for name in ("srun", "scontrol"):
        (tmp_path / name).chmod(0o700)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "10007", "SLURM_JOB_NODELIST": "n[1-2]"}
    ended = subprocess.run(["bash", "-c", slurm_script("train")], cwd=tmp_path, env=environment, check=False)
    assert ended.returncode == status
    called = (tmp_path / "called").read_text().splitlines()
    assert called == ["n1 20007", *(["requeue 10007"] if status == TRY_AGAIN else [])]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"nodes": 0}, "nodes is at least 1, not 0"),
        ({"gpus_per_node": -1}, "gpus_per_node is at least 0"),
        ({"minutes": 1, "warn_seconds": 60}, "60 s before the end of 1 min leaves no time to train"),
        ({"memory": "64 GB"}, "has characters that a name cannot have"),
        ({"partition": "gpu\n#SBATCH --uid=0"}, "has characters that a name cannot have"),
    ],
)
def test_a_batch_script_that_cannot_be_meant_is_rejected(asked, said) -> None:
    with pytest.raises(CourseError, match=said):
        slurm_script("train", **asked)


def test_a_torchrun_on_every_node_starts_a_process_on_every_gpu() -> None:
    text = torchrun_script("train.py --epochs 2", nodes=3, gpus_per_node=4, cores_per_task=32, minutes=30)
    asked = dict(line.partition("=")[::2] for line in lines_of(text))
    assert {"nodes": "3", "ntasks-per-node": "1", "gpus-per-node": "4", "time": "30"}.items() <= asked.items()
    srun = text.partition("\nsrun ")[2]
    assert """sh -c 'PET_RDZV_CONF=is_host=$((SLURM_PROCID == 0)) exec "$@"' sh""" in srun
    variables = "env OMP_NUM_THREADS=8 TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"
    assert f"{variables} torchrun --nnodes=3 --nproc-per-node=4 --max-restarts=3" in srun
    assert "--rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT train.py --epochs 2" in srun
    assert "--nproc-per-node=2 " in torchrun_script("train.py", workers=2)
    with pytest.raises(CourseError, match="workers is at least 1, not 0"):
        torchrun_script("train.py", workers=0)
