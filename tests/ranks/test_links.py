"""A network on one machine: nodes behind links as fast as was asked, of which nothing is left afterwards."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import course_utils as course
from course_utils.errors import CourseError, RankError, RanksGone
from course_utils.machine import gpus
from course_utils.ranks.ending import Ending
from course_utils.ranks.launch_sites import ThisMachine
from course_utils.ranks.links import network
from course_utils.ranks.links.network import EmulatedNetwork
from course_utils.ranks.links.traffic import Meter
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.ranks.sharing import is_suitable

MEBIBYTE = 1 << 20


def interfaces() -> list[str]:
    """Those of this machine, but for "cs1234": that of the tests' Slurm, which may come and go meanwhile."""
    names = [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    return sorted(name for name in names if not re.fullmatch(r"cs\d+", name))


@pytest.fixture(scope="module")
def allowed() -> None:
    if reason := network.obstacle():
        pytest.skip(f"no nodes here: {reason}")


@pytest.fixture(scope="module")
def nodes(allowed):
    ranks = course.start(4, link="50 Mbit/s", slow={2: "20 Mbit/s"})
    yield ranks
    ranks.stop()


# --- NCCL ------------------------------------------------------------------------------------------------------------


def added_up_by_nccl(comm, sizes, meeting):
    """For each vector of so many bytes: whether the sum is right, and the bytes that left this node, by interface."""
    import torch
    import torch.distributed as dist

    def sent():
        lines = [line.split() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
        return {name.strip(":"): int(counts[8]) for name, *counts in lines}

    gpu, found = torch.device("cuda", 0), []
    torch.cuda.set_device(gpu)
    store = dist.FileStore(meeting, comm.size)
    dist.init_process_group("nccl", store=store, rank=comm.rank, world_size=comm.size, device_id=gpu)
    for size in (16, *sizes):
        vector = torch.ones(size // 4, device=gpu)
        comm.Barrier()
        before = sent()
        dist.all_reduce(vector)
        torch.cuda.synchronize()
        comm.Barrier()
        found.append((bool((vector == comm.size).all()), {name: sent()[name] - before[name] for name in before}))
    dist.destroy_process_group()
    return found[1:]


@pytest.mark.skipif(not gpus(), reason="no GPU")
def test_the_bytes_of_nccl_cross_the_links_though_both_nodes_share_a_gpu(allowed, tmp_path) -> None:
    """An all-reduce of n bytes between two nodes sends n from each; the frames' headers come on top."""
    sizes, ranks = [MEBIBYTE, 16 * MEBIBYTE], course.start(2, link="1 Gbit/s")
    try:
        results = ranks.run(added_up_by_nccl, sizes, str(tmp_path / "meeting")).results
    finally:
        ranks.stop()
    for found in results:
        for size, (is_right, sent) in zip(sizes, found, strict=True):
            assert is_right and size <= sent["eth0"] < 1.1 * size and sent["lo"] < 1e4, sent


# --- what is asked --------------------------------------------------------------------------------------------------


def test_rates_and_times_are_read_as_people_write_them() -> None:
    assert EmulatedNetwork.from_words(4, "200 Mbit/s") == EmulatedNetwork((200_000_000,) * 4)
    rates = (1_500_000_000, 20_000_000, 1_500_000_000)
    assert EmulatedNetwork.from_words(3, "1.5Gbit/s", "500 us", {1: "20 mbit/s"}) == EmulatedNetwork(rates, 0.0005)
    assert EmulatedNetwork.from_words(4, None) is None
    assert (
        str(EmulatedNetwork.from_words(3, "1 Gbit/s", "1 ms", {2: "20 Mbit/s"}))
        == "a node each, 1 Gbit/s each way, latency 1 ms (node 2: 20 Mbit/s)"
    )
    assert str(EmulatedNetwork.from_words(4, "20 Mbit/s", ranks_per_node=2)) == "2 on each node, 20 Mbit/s each way"


@pytest.mark.parametrize(
    ("ranks", "options", "words"),
    [
        (4, {"link": "fast"}, 'such as link="200 Mbit/s"'),
        (4, {"link": 200}, 'such as link="200 Mbit/s"'),
        (4, {"link": "200 ms"}, 'such as link="200 Mbit/s"'),
        (4, {"link": "1 Mbit/s"}, "10 Mbit/s to 2 Gbit/s"),
        (4, {"link": "3 Gbit/s"}, "10 Mbit/s to 2 Gbit/s"),
        (1, {"link": "1 Gbit/s"}, "2 to 8 nodes"),
        (9, {"link": "1 Gbit/s"}, "2 to 8 nodes"),
        (4, {"link": "1 Gbit/s", "latency": "1"}, 'such as latency="1 ms"'),
        (4, {"link": "1 Gbit/s", "latency": "1 s"}, "0.5 to 100 ms"),
        (4, {"link": "1 Gbit/s", "slow": {4: "20 Mbit/s"}}, "the nodes are 0 to 3"),
        (4, {"link": None, "latency": "1 ms"}, "need a link"),
        (4, {"link": None, "ranks_per_node": 2}, "need a link"),
        (4, {"link": "1 Gbit/s", "ranks_per_node": 3}, "4 ranks do not fill nodes of 3"),
        (4, {"link": "1 Gbit/s", "ranks_per_node": 4}, "2 to 8 nodes"),
        (4, {"link": "1 Gbit/s", "ranks_per_node": 0}, "how many ranks share a node"),
        (4, {"link": "1 Gbit/s", "ranks_per_node": 2, "slow": {2: "20 Mbit/s"}}, "the nodes are 0 to 1"),
    ],
)
def test_what_cannot_be_is_said(ranks, options, words) -> None:
    with pytest.raises(CourseError) as error:
        EmulatedNetwork.from_words(ranks, **options)
    assert words in str(error.value)


# --- where it is not possible ---------------------------------------------------------------------------------------


def test_a_missing_tool_is_named_with_its_package(monkeypatch) -> None:
    monkeypatch.setattr(network.shutil, "which", lambda tool: None if tool == "tc" else f"/bin/{tool}")
    monkeypatch.setattr(network, "_SBIN", ())
    assert network.obstacle() == "`tc` is missing: `apt install iproute2` brings it."


def test_a_system_that_forbids_it_says_what_its_administrator_would_allow(monkeypatch, capsys) -> None:
    monkeypatch.setattr(network.shutil, "which", lambda tool: f"/bin/{tool}")
    monkeypatch.setattr(network, "_PROBE", "echo unshare: not permitted >&2; exit 1")
    monkeypatch.setattr(network, "_KNOBS", ())
    assert network.possible_network(EmulatedNetwork((10**8,) * 4)) is None
    line = capsys.readouterr().out
    assert line.count("\n") == 1 and "its administrator would allow" in line and "inside this machine" in line


def test_without_latencys_device_the_links_keep_their_rates(monkeypatch, capsys) -> None:
    monkeypatch.setattr(network, "obstacle", lambda: None)
    monkeypatch.setattr(network, "delay_obstacle", lambda: "no device")
    assert network.possible_network(EmulatedNetwork((10**8,) * 2, 0.001, 2)) == EmulatedNetwork((10**8,) * 2, 0.0, 2)
    assert capsys.readouterr().out.startswith("No latency here: no device")


def test_ranks_without_links_have_no_traffic() -> None:
    with pytest.raises(CourseError, match="have no links"):
        Meter([], None).traffic(None)


# --- four nodes -----------------------------------------------------------------------------------------------------


def send_to(comm, receiver, size):
    data = np.zeros(size, np.uint8)
    comm.Barrier()
    begin = time.perf_counter()
    if comm.rank == 0:
        comm.Send(data, dest=receiver)
    if comm.rank == receiver:
        comm.Recv(data, source=0)
    return time.perf_counter() - begin


@pytest.mark.parametrize(("receiver", "rate"), [(1, 50e6), (2, 20e6)])
def test_a_message_takes_its_time_and_the_kernel_counts_it(nodes, receiver, rate) -> None:
    run = nodes.run(send_to, receiver, MEBIBYTE)
    assert run.results[receiver] > 0.5 * MEBIBYTE * 8 / rate
    traffic = nodes.traffic()
    assert traffic.sent[0] > MEBIBYTE and traffic.received[receiver] > MEBIBYTE
    assert traffic.sent[3] < MEBIBYTE / 4 and traffic.received[3] < MEBIBYTE / 4
    assert "The others wait for node" in traffic.picture().alt_text
    assert f"node {receiver} sent" in traffic.picture().alt_text


def add_up(size):
    import torch
    import torch.distributed as dist

    vector = torch.ones(size // 4)
    dist.all_reduce(vector)
    return vector[0].item()


def test_gloo_takes_the_links_too(nodes) -> None:
    assert nodes.run(add_up, MEBIBYTE, backend="gloo").results == [4.0] * 4
    assert all(bytes_out > MEBIBYTE for bytes_out in nodes.traffic().sent)


def test_a_cell_runs_on_nodes_as_on_ranks(nodes) -> None:
    cell = "from mpi4py import MPI\nMPI.COMM_WORLD.allgather(MPI.COMM_WORLD.rank)"
    replies = nodes.execute(cell)
    assert [reply.value[0]["data"]["text/plain"] for reply in replies] == ["[0, 1, 2, 3]"] * 4


def waits_for_nobody(comm):
    if comm.rank == 1:
        comm.recv(source=3)


def test_nodes_that_wait_for_ever_are_named(nodes) -> None:
    with pytest.raises(RankError, match=r"[Rr]ank 1 is waiting in recv\(source=3\)"):
        nodes.run(waits_for_nobody)
    assert nodes.run(lambda comm: comm.rank).results == [0, 1, 2, 3]


def exchanges_while_another_has_raised(comm):
    if comm.rank == 3:
        raise ValueError("oh")
    if comm.rank < 2:
        comm.Sendrecv(np.zeros(16 * 2**20, np.uint8), 1 - comm.rank, recvbuf=np.empty(16 * 2**20, np.uint8))


def test_an_error_on_one_rank_breaks_off_no_message_that_is_merely_slow(nodes) -> None:
    """It takes 2.7 s; the others of a rank that has raised are waited for as long as anything moves on the links."""
    with pytest.raises(RankError) as error:
        nodes.run(exchanges_while_another_has_raised)
    assert error.value.ending == Ending.RAISED
    assert str(error.value).startswith("rank 3 raised") and "Meanwhile" not in str(error.value)


def receives_an_array(comm):
    if comm.rank == 0:
        comm.Send(np.zeros(20 * MEBIBYTE, np.uint8), dest=2)
    if comm.rank == 2:
        comm.Recv(np.empty(20 * MEBIBYTE, np.uint8), source=0)


def receives_an_object(comm):
    if comm.rank == 0:
        comm.send(bytes(20 * MEBIBYTE), dest=2)
    if comm.rank == 2:
        comm.recv(source=0)


@pytest.mark.long
@pytest.mark.parametrize("receives", [receives_an_array, receives_an_object])
def test_who_receives_much_over_a_slow_link_can_be_stopped(nodes, receives) -> None:
    """The message takes 8 s, and a rank that cannot leave what it does is ended after 5 s."""
    threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT]).start()
    pids = nodes.pids
    with pytest.raises(RankError, match=r"^stopped by you\. Rank 0 is waiting in .*rank 2 is waiting in "):
        nodes.run(receives)
    assert nodes.pids == pids and nodes.run(lambda comm: comm.allreduce(1)).results == [4] * 4


def test_only_ranks_with_the_same_links_are_taken(nodes) -> None:
    same = EmulatedNetwork.from_words(4, "50 Mbit/s", slow={2: "20 Mbit/s"})
    folder = nodes.connection.folder
    assert is_suitable(folder, 4, ThisMachine(4, same))
    assert not is_suitable(folder, 4, ThisMachine(4, EmulatedNetwork.from_words(4, "50 Mbit/s")))
    assert not is_suitable(folder, 4, ThisMachine(4))
    assert course.start(4, link="50 Mbit/s", slow={2: "20 Mbit/s"}) is nodes


def test_nothing_is_left_after_a_stop(nodes) -> None:
    before, folder = interfaces(), nodes.connection.folder
    assert folder.processes()
    nodes.stop()
    assert not folder.processes() and not folder.path.exists()
    assert interfaces() == before


def test_ranks_on_one_node_need_no_link(allowed) -> None:
    ranks = course.start(4, link="20 Mbit/s", ranks_per_node=2)
    try:
        inside = ranks.run(send_to, 1, MEBIBYTE).results[1]
        quiet = ranks.traffic()
        between = ranks.run(send_to, 2, MEBIBYTE).results[2]
        busy = ranks.traffic()
        assert inside < between / 2 and between > 0.5 * MEBIBYTE * 8 / 20e6
        assert quiet.sent[0] < MEBIBYTE / 4 and busy.sent[0] > MEBIBYTE and busy.received[1] > MEBIBYTE
        assert len(busy.sent) == 2
        assert ranks.run(add_up, MEBIBYTE, backend="gloo").results == [4.0] * 4
    finally:
        ranks.stop()


# --- latency, and an owner that is killed ---------------------------------------------------------------------------

OWNER = """
import time
import numpy as np
import course_utils as course

def trip(comm):
    byte, times = np.zeros(1, np.uint8), []
    for _ in range(20):
        comm.Barrier()
        begin = time.perf_counter()
        if comm.rank == 0:
            comm.Send(byte, dest=1)
            comm.Recv(byte, source=1)
        else:
            comm.Recv(byte, source=0)
            comm.Send(byte, dest=0)
        times.append(time.perf_counter() - begin)
    return min(times)

ranks = course.start(2, link="100 Mbit/s", latency="5 ms")
print("here", ranks.run(trip).results[0], ranks.connection.folder.path, flush=True)
time.sleep(600)
"""


def test_latency_is_kept_and_nothing_is_left_of_nodes_whose_owner_is_killed(allowed) -> None:
    if reason := network.delay_obstacle():
        pytest.skip(f"no latency here: {reason}")
    before = interfaces()
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    try:
        _, seconds, path = next(line for line in owner.stdout if line.startswith("here")).split()
        assert 0.9 * 2 * 0.005 < float(seconds) < 10 * 0.005
        folder = RanksFolder(Path(path))
        assert any("delay.py" in Path(f"/proc/{pid}/cmdline").read_text() for pid in folder.processes())
    finally:
        os.kill(owner.pid, signal.SIGKILL)
        owner.communicate()
    deadline = time.monotonic() + 20
    while (folder.processes() or folder.path.exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not folder.processes() and not folder.path.exists()
    assert interfaces() == before


def exchange_then_wait(comm, size):
    import numpy as np

    numbers, other = np.ones(size), 1 - comm.rank
    comm.Sendrecv(numbers, dest=other, recvbuf=numbers, source=other)
    if comm.rank == 0:
        comm.recv(source=1)


def sum_much(comm):
    import numpy as np

    comm.Allreduce(np.ones(8_000_000), np.empty(8_000_000))


@pytest.mark.long
def test_a_slow_transfer_is_no_hang_and_a_hang_behind_it_is_seen_at_once(allowed) -> None:
    ranks = course.start(2, link="10 Mbit/s")
    with pytest.raises(RankError) as error:
        ranks.run(exchange_then_wait, 600_000)  # 3.8 s each way, in which all ranks wait
    assert str(error.value).startswith("deadlock: ") and "Sendrecv" not in str(error.value)
    ranks.stop()


@pytest.mark.long
def test_what_is_stopped_in_the_middle_leaves_ranks_that_work_or_says_so(allowed) -> None:
    ranks = course.start(4, link="100 Mbit/s")
    timer = threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(CourseError, match="^stopped by you"):
        ranks.run(sum_much)
    if not ranks.healthy:
        with pytest.raises(RanksGone, match="restart"):
            ranks.run(send_to, 1, 8)
        ranks.restart()
    assert ranks.run(lambda comm: comm.allreduce(1)).results == [4] * 4
    ranks.stop()


def test_the_machines_own_interfaces_may_have_any_names(allowed, tmp_path) -> None:
    hidden = "mount -t tmpfs none /sys/class/net; ln -s ../../devices/virtual/net/wlan7 /sys/class/net/wlan7; "
    code = """
        import course_utils as course
        ranks = course.start(2, link="100 Mbit/s")
        print(ranks.run(lambda comm: comm.allreduce(1)).results)
        ranks.stop()
    """
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-e", "-c", hidden + 'exec "$@"', "sh"]
    command += [sys.executable, "-c", textwrap.dedent(code)]
    environment = os.environ | {"COURSE_RUNTIME": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert "[2, 2]" in done.stdout, done.stdout + done.stderr
