"""The training program in jobs of a real Slurm: on two nodes, stopped by time limit, scancel and requeue, and resumed.

Where there is no Slurm, these tests are skipped; under CI=true they must run. Slurm counts a job's time in minutes, and
may signal a minute early: that job is handed in first and looked at last.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from slurm_here import SlurmHere, free_ports, obstacle, slurm_here, wait_until

import course_utils as course
from course_utils.lessons.gpu_nodes import launch_commands
from course_utils.lessons.gpu_nodes.slurm_script import slurm_script
from course_utils.lessons.gpu_nodes.torchrun_script import torchrun_script
from course_utils.lessons.gpu_nodes.train_ddp import Settings, train_ddp

PATIENCE = 120
EPOCHS = 4
SLOW_AT_FIRST = "--pause ${FIRST_PAUSE:-0.3}"
"""Seconds for each step; the second try, which Slurm counts, does not sleep."""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory) -> Iterator[SlurmHere]:
    """Two nodes, c1 and c2, that give a job as long to end as Slurm does unless told otherwise."""
    if why := obstacle():
        assert os.environ.get("CI") != "true", f"under CI=true Slurm must run: {why}"
        pytest.skip(why)
    with slurm_here([tmp_path_factory.getbasetemp()]) as running, pytest.MonkeyPatch.context() as patch:
        conf = running.folder / "slurm.conf"
        conf.write_text(conf.read_text().replace("KillWait=2", "KillWait=30"))
        running.call("scontrol", "reconfigure")
        running.set_variables(patch)
        patch.setenv("COURSE_SHARED", str(tmp_path_factory.mktemp("shared")))
        yield running


@dataclass
class Handed:
    """A job that was handed in, with the folder of its training."""

    slurm: SlurmHere
    folder: Path
    number: str

    @property
    def log(self) -> str:
        file = self.folder / f"train-{self.number}.out"
        return file.read_text() if file.exists() else ""

    @property
    def state(self) -> str:
        return self.slurm.call("scontrol", "show", "job", self.number).split("JobState=")[1].split()[0]

    def wait_for(self, words: str) -> None:
        assert wait_until(lambda: words in self.log, PATIENCE), (
            f"no {words!r}; state {self.state}; it wrote\n{self.log}"
        )

    @property
    def result(self) -> dict:
        self.wait_for("done: ")
        return json.loads(self.log.split("done: ")[1].splitlines()[0])


def hand_in(slurm: SlurmHere, folder: Path, options: str = "", **job) -> Handed:
    """Train on two nodes, one process on each, started by srun."""
    command = f"{sys.executable} -m course_utils.lessons.gpu_nodes.train_ddp {switches(folder)} {options}"
    script = slurm_script(command, nodes=2, **job)
    return submit(
        slurm, folder, script.replace("export OMP", '[ -n "$SLURM_RESTART_COUNT" ] && FIRST_PAUSE=0\nexport OMP')
    )


def switches(folder: Path) -> str:
    """Of the training."""
    return f"--folder {folder} --epochs {EPOCHS} --save-every 5"


def submit(slurm: SlurmHere, folder: Path, script: str, master: str = "") -> Handed:
    """Hand a script in; its tasks meet at a port of their own, and at this address of the first node's."""
    folder.mkdir(exist_ok=True)
    (folder / "job.sh").write_text(script)
    meeting = {"MASTER_ADDR": master or slurm.node_address("c1"), "MASTER_PORT": str(free_ports(1)[0])}
    said = subprocess.run(
        ["sbatch", "--parsable", f"--chdir={folder}", str(folder / "job.sh")],
        env={**slurm.environment, **meeting, "GLOO_SOCKET_IFNAME": "eth0" if slurm.apart else "lo"},
        capture_output=True,
        text=True,
        check=True,
    )
    return Handed(slurm, folder, said.stdout.strip())


@pytest.fixture(scope="module")
def limited(slurm, tmp_path_factory) -> Handed:
    """A job whose two minutes are too short for its training. It has 30 to 90 s to start in, on a busy machine."""
    return hand_in(
        slurm, tmp_path_factory.mktemp("limited"), SLOW_AT_FIRST.replace("0.3", "5"), minutes=2, warn_seconds=30
    )


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> float:
    """The final loss of one process that nobody interrupts."""
    return train_ddp(Settings(str(tmp_path_factory.mktemp("alone")), EPOCHS)).loss


@pytest.mark.long
def test_ranks_of_a_notebook_run_the_same_function(slurm, limited, alone, tmp_path) -> None:
    ranks = course.start(2, where="slurm", nodes=2)
    try:
        run = ranks.run(train_ddp, Settings(str(tmp_path), EPOCHS), backend="gloo")
    finally:
        ranks.stop()
    first, second = run.results
    assert first.nodes == second.nodes == ("c1", "c2")
    assert first.losses == second.losses
    assert first.loss == pytest.approx(alone, rel=1e-4)
    assert "2 ranks on 2 nodes (c1, c2), ranks of a notebook: gloo, because there is no GPU" in run.output[0]


@pytest.mark.long
def test_cancelled_handed_in_again_and_requeued_it_ends_with_the_loss_of_one_process(
    slurm, limited, alone, tmp_path
) -> None:
    job = hand_in(slurm, tmp_path / "training", SLOW_AT_FIRST)
    assert wait_until((job.folder / "checkpoint.pt").exists, PATIENCE), job.log
    assert "2 ranks on 2 nodes (c1, c2), started by srun: gloo, because there is no GPU" in job.log
    slurm.call("scancel", job.number)
    job.wait_for("Stopped after step")
    assert f"SIGTERM. The checkpoint is {job.folder}/checkpoint.pt" in job.log
    assert wait_until(lambda: job.state == "CANCELLED", PATIENCE), job.state
    stopped = int(job.log.split("Stopped after step ")[1].split(":")[0])

    again = hand_in(slurm, job.folder, SLOW_AT_FIRST)
    again.wait_for(f"resumes after step {stopped}, from")
    slurm.call("scontrol", "requeue", again.number)
    again.wait_for("Stopped after step")
    assert again.result["losses"][-1] == pytest.approx(alone, rel=1e-4)
    assert again.result["resumed_at"] > stopped
    assert again.result["nodes"] == ["c1", "c2"]


def test_a_notebook_hands_a_script_in_and_reads_what_the_job_said(slurm, limited, alone, tmp_path, monkeypatch) -> None:
    if slurm.apart:  # the script finds the first node by itself
        monkeypatch.delenv("MASTER_ADDR", raising=False)
    else:
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(free_ports(1)[0]))
    script = slurm_script(f"python {train_ddp.__code__.co_filename} {switches(tmp_path)}", nodes=2)
    log = launch_commands.hand_in(script, tmp_path, PATIENCE)
    assert launch_commands.losses_of(log)[-1] == pytest.approx(alone, rel=1e-4)
    assert "2 ranks on 2 nodes (c1, c2), started by srun" in log


@pytest.mark.long
def test_a_torchrun_on_every_node_starts_all_again_when_one_is_killed(slurm, limited, alone, tmp_path) -> None:
    command = f"{train_ddp.__code__.co_filename} {switches(tmp_path)} --die-at 30"
    torchrun = f"{sys.executable} -m torch.distributed.run"
    if not slurm.apart:
        torchrun += " --local-addr=127.0.0.1"  # c1 and c2 are not names of hosts
    script = torchrun_script(command, nodes=2).replace("torchrun --nnodes", f"{torchrun} --nnodes")
    # By itself no torchrun would take this address for its own machine's, and keep the store.
    job = submit(slurm, tmp_path, script, slurm.node_address("c1", second=True))
    assert job.result["losses"][-1] == pytest.approx(alone, rel=1e-4)
    started = r"2 ranks on 2 nodes \((c1, c2|c2, c1)\), started by torchrun: gloo, because there is no GPU"
    assert re.search(started, job.log)  # torchrun numbers the nodes as they come
    assert "kills itself after step 30" in job.log and job.result["resumed_at"] >= 25


@pytest.mark.long
def test_before_its_time_is_up_a_job_writes_a_checkpoint_and_queues_itself_again(slurm, limited, alone) -> None:
    limited.wait_for("Stopped after step")
    assert "SIGTERM. The checkpoint is" in limited.log
    assert limited.result["losses"][-1] == pytest.approx(alone, rel=1e-4)
    assert limited.result["resumed_at"] > 0
