"""A real Slurm: jobs on two nodes. Where there is none, these tests are skipped; under CI=true they must run."""

import contextlib
import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_here import SlurmHere, obstacle, slurm_here, wait_until

import course_utils as course
from course_utils import settings
from course_utils.errors import CourseError, RankError, RanksGone
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.ranks.ranks import Ranks
from course_utils.ranks.slurm import addresses, batch_job
from course_utils.ranks.slurm.batch_job import Job
from course_utils.ranks.slurm.cluster_state import ClusterHealth, cluster_state
from course_utils.ranks.slurm.node_agent import interface_to, network_variables


@pytest.fixture(scope="module")
def slurm(tmp_path_factory) -> Iterator[SlurmHere]:
    """Two nodes, c1 and c2, whose commands this process finds."""
    if why := obstacle():
        assert os.environ.get("CI") != "true", f"under CI=true Slurm must run: {why}"
        pytest.skip(why)
    shared = tmp_path_factory.mktemp("shared")
    with slurm_here([tmp_path_factory.getbasetemp()]) as running, pytest.MonkeyPatch.context() as patch:
        running.set_variables(patch)
        patch.setenv("COURSE_SHARED", str(shared))
        yield running


@pytest.fixture(scope="module")
def four(slurm) -> Iterator[Ranks]:
    """Four ranks on the two nodes."""
    ranks = course.start(4, where="slurm", nodes=2)
    yield ranks
    ranks.stop()


@pytest.fixture
def healthy(four) -> Ranks:
    """The same, brought back where the test before has ended them."""
    return four if four.healthy else four.restart()


def test_four_tasks_lie_on_two_nodes(slurm) -> None:
    said = slurm.call("srun", "--nodes=2", "--ntasks-per-node=2", "sh", "-c", "echo $SLURM_PROCID $SLURMD_NODENAME")
    assert sorted(said.split("\n")[:-1]) == ["0 c1", "1 c1", "2 c2", "3 c2"]


@pytest.fixture
def nodes_apart(slurm) -> SlurmHere:
    if not slurm.apart:
        assert os.environ.get("CI") != "true", "under CI=true nodes must have networks of their own"
        pytest.skip("this system allows no networks and mounts for nodes")
    return slurm


@pytest.mark.timeout(120)
def test_nodes_have_addresses_names_and_a_tmp_of_their_own_and_share_a_home(nodes_apart, healthy, tmp_path) -> None:
    def look(comm, shared: str) -> tuple[str, str, bool, list[str], list[str]]:
        import socket
        import tempfile

        name = socket.gethostname()
        for folder in (tempfile.gettempdir(), shared):
            Path(folder, f"rank-{comm.rank}").touch()
        comm.barrier()
        seen = [sorted(file.name for file in Path(place).glob("rank-*")) for place in (tempfile.gettempdir(), shared)]
        return name, socket.gethostbyname(name), Path("/tmp/own").exists(), *seen

    first, _, _, last = healthy.run(look, str(tmp_path)).results
    of_node = {0: ["rank-0", "rank-1"], 3: ["rank-2", "rank-3"]}
    everyone = [*of_node[0], *of_node[3]]
    assert first == ("c1", nodes_apart.node_address("c1"), True, of_node[0], everyone)
    assert last == ("c2", nodes_apart.node_address("c2"), True, of_node[3], everyone)


@pytest.mark.timeout(120)
def test_all_three_libraries_take_the_network_between_the_nodes(nodes_apart, healthy) -> None:
    def networks(comm) -> list[str | None]:
        return [os.environ.get(f"{name}_SOCKET_IFNAME") for name in ("GLOO", "NCCL")] + [os.environ["UCX_NET_DEVICES"]]

    assert healthy.run(networks).results == [["eth0"] * 3] * 4


@pytest.mark.timeout(120)
def test_what_a_rank_does_is_written_into_no_file(healthy) -> None:
    folder = healthy.connection.folder.path

    def written() -> dict[Path, int]:
        others = [file for file in folder.iterdir() if file.name != "call-lock" and file.suffix != ".log"]
        return {file: file.stat().st_mtime_ns for file in others}

    healthy.run(lambda comm: comm.barrier())
    before = written()
    healthy.run(lambda comm: [comm.allreduce(1) for _ in range(100)])
    assert written() == before
    assert not list(folder.glob("activity-*"))


def add_over_torch() -> list[float]:
    import torch
    import torch.distributed as dist

    x = torch.full((3,), float(dist.get_rank()))
    dist.all_reduce(x)
    return x.tolist()


@pytest.mark.timeout(120)
def test_ranks_on_nodes_work_as_those_of_this_machine_do(healthy) -> None:
    assert [one["node"] for one in healthy.facts["ranks"]] == ["c1", "c1", "c2", "c2"]
    assert healthy.facts["line"].startswith("4 ranks on 2 nodes (c1, c2) of Slurm's job")
    run = healthy.run(lambda comm: comm.allreduce(comm.rank))
    assert run.results == [6] * 4 and run.events
    assert healthy.run(add_over_torch, backend="gloo").results == [[6.0] * 3] * 4
    with pytest.raises(RankError, match="ZeroDivisionError"):
        healthy.run(lambda comm: 1 // (comm.rank - 2))
    assert course.start(4, where="slurm", nodes=2).pids == healthy.pids, "they are taken over, not started again"


@pytest.mark.timeout(120)
def test_ranks_that_hang_are_told_so_and_work_on(healthy) -> None:
    with pytest.raises(RankError, match=r"deadlock: .* Rank 0 is waiting in recv\(source=3\)"):
        healthy.run(lambda comm: comm.recv(source=3) if comm.rank == 0 else None)

    def turn_on_the_spot(comm) -> None:
        while comm.rank == 1:
            pass

    attempt = healthy.attempt(turn_on_the_spot, [()] * 4, limit=1.0)
    assert "rank 1 was computing" in attempt.trouble.lower()
    assert healthy.run(lambda comm: comm.allreduce(1)).results == [4] * 4


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("end", "said"),
    [
        (lambda comm: os._exit(3) if comm.rank == 2 else comm.barrier(), "rank 2 ended itself, with exit code 3"),
        (lambda comm: os.kill(os.getpid(), 9) if comm.rank == 3 else comm.barrier(), "rank 3 was ended by signal 9"),
    ],
    ids=["exit", "kill"],
)
def test_a_rank_that_ends_is_named(healthy, end, said) -> None:
    with pytest.raises(RanksGone, match=said):
        healthy.run(end)


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_rank_that_takes_too_much_memory_is_told_what_to_ask_for(slurm) -> None:
    def take(comm) -> int:
        taken = bytearray(1_500_000_000) if comm.rank == 1 else b""
        comm.barrier()
        time.sleep(20)  # Slurm looks once a second
        return len(taken)

    ranks = course.start(2, where="slurm", nodes=2, memory="900M")
    try:
        with pytest.raises(RanksGone, match=r"took more memory than the job may use: .*memory=\"64G\""):
            ranks.run(take)
    finally:
        ranks.stop()


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_job_gets_the_gpus_cores_and_memory_that_it_asks_for(slurm) -> None:
    def given(comm) -> str:
        return os.environ["SLURM_GPUS_ON_NODE"]

    ranks = course.start(2, where="slurm", nodes=2, gpus_per_node=2)
    try:
        assert ranks.run(given).results == ["2", "2"]
        told = slurm.call("scontrol", "show", "job", ranks.connection.folder.facts()["job"])
        assert "NumCPUs=8 NumTasks=2 CPUs/Task=4" in told and "mem=16G" in told and "gres:gpu:2" in told
    finally:
        ranks.stop()
    with pytest.raises(CourseError, match="Slurm rejected the job: .*not available"):
        course.start(2, where="slurm", nodes=2, gpus_per_node=3)


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_cancelled_job_is_told_and_leaves_nothing(slurm, healthy) -> None:
    folder = healthy.connection.folder
    slurm.call("scancel", folder.facts()["job"])
    with pytest.raises(RanksGone, match=r"Slurm's job \d+ is over: it was cancelled with scancel"):
        healthy.run(lambda comm: time.sleep(60))
    healthy.restart()
    assert healthy.run(lambda comm: comm.size).results == [4] * 4
    assert not folder.path.exists()


@pytest.mark.long
@pytest.mark.timeout(200)
def test_a_job_whose_time_is_up_is_told_and_nothing_hangs(slurm) -> None:
    ranks = course.start(2, where="slurm", nodes=2, minutes=1)
    number = ranks.connection.folder.facts()["job"]
    try:
        slurm.call("scontrol", "update", f"JobId={number}", "EndTime=now")  # instead of waiting for the minute's end
        with pytest.raises(RanksGone, match=rf"Slurm's job {number} is over: its time was up: .*minutes=") as told:
            ranks.run(lambda comm: time.sleep(180))
        assert "`ranks.restart()` starts new ranks" in str(told.value)
        assert "\n" not in str(told.value)
        with pytest.raises(RanksGone):
            ranks.run(lambda comm: comm.size)
        assert ranks.restart().run(lambda comm: comm.size).results == [2, 2]
    finally:
        ranks.stop()
    assert wait_until(lambda: "CG" not in slurm.call("squeue", "--noheader", "--format=%t"), 20)


@pytest.mark.long
@pytest.mark.timeout(200)
def test_a_node_that_goes_down_is_named_and_so_is_a_job_that_is_suspended(slurm, healthy) -> None:
    number = healthy.connection.folder.facts()["job"]
    end = threading.Timer(1.0, lambda: slurm.call("scontrol", "suspend", number))
    end.start()
    with pytest.raises(RanksGone, match=rf"Slurm's job {number} is suspended, .*`scontrol resume {number}`"):
        healthy.run(lambda comm: time.sleep(30))
    slurm.call("scontrol", "resume", number)
    assert wait_until(lambda: not healthy.connection.control.dead(), 30)
    assert healthy.run(lambda comm: comm.size).results == [4] * 4, "its ranks have kept all that they had"
    end = threading.Timer(1.0, lambda: slurm.call("scontrol", "update", "NodeName=c2", "State=DOWN", "Reason=fan"))
    end.start()
    try:
        for _ in range(2):
            said = rf"Slurm's job {number} is over: node c2 went down(: fan)? \(NODE_FAIL\)"
            with pytest.raises(RanksGone, match=said):
                healthy.run(lambda comm: time.sleep(30))
    finally:
        end.join()
        with contextlib.suppress(subprocess.CalledProcessError):  # it may be back by itself
            slurm.call("scontrol", "update", "NodeName=c2", "State=RESUME")
    assert wait_until(lambda: slurm.states()["c2"] == "idle", 20)


@pytest.mark.timeout(120)
def test_a_folder_that_nodes_do_not_see_is_named(nodes_apart, monkeypatch) -> None:
    with tempfile.TemporaryDirectory(prefix="not-shared-", dir="/tmp") as own:
        monkeypatch.setenv("COURSE_SHARED", own)
        with pytest.raises(CourseError, match=rf"The nodes do not see COURSE_SHARED={own}, .*export COURSE_SHARED"):
            course.start(2, where="slurm", nodes=2)


@pytest.mark.timeout(120)
def test_an_interface_that_nodes_do_not_have_is_named(nodes_apart, monkeypatch) -> None:
    monkeypatch.setenv("COURSE_INTERFACE", "ib9")
    with pytest.raises(CourseError, match="COURSE_INTERFACE=ib9 is no network interface of c1 and c2: there is .*eth0"):
        course.start(2, where="slurm", nodes=2)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("change", "back", "words", "health"),
    [
        (("PartitionName=course", "State=DOWN"), ("PartitionName=course", "State=UP"), "PartitionDown", "no partition"),
        (
            ("NodeName=c1,c2", "State=DRAIN", "Reason=new kernel"),
            ("NodeName=c1,c2", "State=RESUME"),
            "no node of the partition course is up .c1 and c2: new kernel",
            "no node",
        ),
    ],
    ids=["partition", "nodes"],
)
def test_a_job_for_which_there_is_no_place_is_given_up_and_the_doctor_agrees(
    slurm, change, back, words, health
) -> None:
    assert wait_until(lambda: cluster_state().health is ClusterHealth.TAKES_JOBS, 30)
    slurm.call("scontrol", "update", *change)
    try:
        assert cluster_state().health == health
        with pytest.raises(CourseError, match=rf"did not start\. Slurm's job \d+ cannot begin, because .*{words}"):
            course.start(2, where="slurm", nodes=2)
    finally:
        slurm.call("scontrol", "update", *back)
    assert wait_until(lambda: set(slurm.states().values()) == {"idle"}, 30)


@pytest.mark.timeout(120)
def test_a_jobs_name_and_comment_tell_the_lesson(slurm, monkeypatch) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", "notebooks/13_gpu_nodes_further.ipynb")
    ranks = course.start(2, where="slurm", nodes=2)
    try:
        assert slurm.call("squeue", "--noheader", "--name=course-13", "--format=%j %k").strip() == "course-13 course-13"
    finally:
        ranks.stop()


@pytest.mark.timeout(120)
def test_a_notebook_that_is_gone_takes_its_job_with_it(slurm) -> None:
    folder = RanksFolder.new(settings.SHARED.value())
    number = slurm.call("sbatch", "--parsable", "--wrap=sleep 60").strip()
    folder.write_facts(end_with=["scancel", number])
    folder.end()
    assert wait_until(lambda: "CANCELLED" in slurm.call("scontrol", "show", "job", number), 10)
    assert not folder.path.exists()


def test_what_slurm_rejects_is_told_in_its_own_words(slurm) -> None:
    with pytest.raises(CourseError, match="Slurm rejected the job: .*invalid partition"):
        course.start(2, where="slurm", partition="nowhere")
    with pytest.raises(CourseError, match=r"did not start\. Slurm's job \d+ asks for more nodes, .* \(PartitionConfig"):
        course.start(200, where="slurm", nodes=2)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"nodes": 3}, "4 ranks cannot be divided evenly among 3 nodes"),
        ({"nodes": 0}, "nodes is a whole number of at least 1"),
        ({"gpus_per_node": -1}, "gpus_per_node is a whole number of at least 0"),
        ({"partition": "gpu; rm -rf ~"}, "not a name of a partition"),
        ({"hours": 3}, r"hours=….* unknown\. With Slurm you can set cores_per_rank, gpus_per_node, memory, minutes"),
        ({"link": "100 Mbit/s"}, "links of their own"),
    ],
)
def test_what_cannot_be_meant_is_rejected(asked, said) -> None:
    with pytest.raises(CourseError, match=said):
        course.start(4, where="slurm", **asked)


def test_what_is_for_slurm_is_rejected_here() -> None:
    with pytest.raises(CourseError, match="is for where="):
        course.start(4, nodes=2)
    with pytest.raises(CourseError, match="are known, or nothing"):
        course.start(4, where="cloud")


def test_a_job_asks_for_what_it_was_given() -> None:
    assert Job(4, cores_per_rank=2, memory="16G").options() == [
        "--nodes=1",
        "--ntasks-per-node=4",
        "--cpus-per-task=2",
        "--mem=16G",
        "--time=60",
    ]
    assert Job(8, nodes=2, gpus_per_node=4, minutes=30, partition="gpu").options() == [
        "--nodes=2",
        "--ntasks-per-node=4",
        "--cpus-per-task=4",
        "--mem=32G",
        "--time=30",
        "--gpus-per-node=4",
        "--partition=gpu",
    ]


def test_an_address_that_leads_back_to_this_machine_is_rejected(monkeypatch) -> None:
    monkeypatch.delenv("COURSE_ADDRESS", raising=False)
    monkeypatch.setattr(addresses.socket, "gethostname", lambda: "login1")
    monkeypatch.setattr(addresses.socket, "gethostbyname", lambda name: "127.0.1.1")
    with pytest.raises(CourseError, match=r"login1, stands for 127\.0\.1\.1 here\..*export COURSE_ADDRESS="):
        addresses.address()
    monkeypatch.setattr(addresses.socket, "gethostbyname", lambda name: "10.1.0.7")
    assert addresses.address() == "10.1.0.7"

    def unknown(name: str) -> str:
        raise OSError(-2, "Name or service not known")

    monkeypatch.setattr(addresses.socket, "gethostbyname", unknown)
    with pytest.raises(CourseError, match=r"stands for no address \(Name or service not known\)"):
        addresses.address()
    monkeypatch.setattr(addresses.socket, "gethostbyname", lambda name: name)
    monkeypatch.setenv("COURSE_ADDRESS", "127.0.0.1")
    assert addresses.address() == "127.0.0.1", "what was named counts"


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("203.0.113.7", "is no address of this machine"),
        ("login1.invalid", "is no address, nor a name that has one"),
        ("fe80::1", "is an IPv6 address"),
    ],
)
def test_an_address_of_another_machine_is_rejected_before_the_job(monkeypatch, named, why) -> None:
    monkeypatch.setenv("COURSE_ADDRESS", named)
    with pytest.raises(CourseError, match=rf"COURSE_ADDRESS={named} {why}.*Its addresses are .*127\.0\.0\.1\."):
        addresses.address()


@pytest.mark.parametrize(
    ("listed", "chosen"),
    [
        ("MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\n", "pmi2"),
        ("MPI plugin types are...\n\tcray_shasta\n\tnone\n", "cray_shasta"),
        ("MPI plugin types are...\n\tnone\n\tpmix\nspecific pmix plugin versions available: pmix_v4\n", "pmix"),
        ("srun: error: no such thing", "pmi2"),
    ],
)
def test_srun_is_asked_how_ranks_hear_of_each_other(monkeypatch, tmp_path, listed, chosen) -> None:
    monkeypatch.delenv("COURSE_SRUN_MPI", raising=False)
    (tmp_path / "srun").write_text(f"#!/bin/sh\nprintf '{listed}' >&2\n")
    (tmp_path / "srun").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert batch_job.mpi_plugin() == chosen
    monkeypatch.setenv("COURSE_SRUN_MPI", "other")
    assert batch_job.mpi_plugin() == "other"


def test_ranks_that_do_not_know_of_each_other_are_told_with_the_line_to_set(slurm, monkeypatch) -> None:
    monkeypatch.setenv("COURSE_SRUN_MPI", "none")
    with pytest.raises(CourseError, match=r"2 processes started, but they do not know of each other.*--mpi=none"):
        course.start(2, where="slurm", nodes=2)


def test_gloo_ucx_and_nccl_take_the_way_to_the_notebook() -> None:
    import psutil

    ways = {
        one.address: name
        for name, has in psutil.net_if_addrs().items()
        for one in has
        if one.family == socket.AF_INET and not one.address.startswith("127.")
    }
    for own, name in ways.items():
        assert interface_to(own) == name
        assert set(network_variables({"COURSE_ADDRESS": own}).values()) == {name}
    assert network_variables({"COURSE_ADDRESS": "127.0.0.1"}) == {}
    assert network_variables({"COURSE_ADDRESS": "no.such.host.invalid"}) == {}
    assert network_variables({"COURSE_INTERFACE": "ib0", "NCCL_SOCKET_IFNAME": "ib1"}) == {
        "GLOO_SOCKET_IFNAME": "ib0",
        "UCX_NET_DEVICES": "ib0",
    }
