"""What notebook and node agents tell each other through the hub, without a Slurm: one process plays all parts."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict

import pytest
import zmq

from course_utils.errors import CourseError
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.ranks.slurm import addresses, node_agent, remote_ranks
from course_utils.ranks.slurm.addresses import ports
from course_utils.ranks.slurm.hub import Hub, HubConnection, hub_file
from course_utils.ranks.slurm.node_agent import NodeAgent, NodeReport
from course_utils.ranks.slurm.remote_ranks import RemoteRanks
from course_utils.trace.activity import WAITING


@pytest.fixture
def folder(tmp_path) -> RanksFolder:
    return RanksFolder.new(tmp_path)


@pytest.fixture
def hub(folder) -> Iterator[Hub]:
    """A hub that serves until the test has ended."""
    serving, ended = Hub(folder, "127.0.0.1"), threading.Event()

    def serve() -> None:
        while not ended.is_set():
            serving.step()

    thread = threading.Thread(target=serve)
    thread.start()
    yield serving
    ended.set()
    thread.join()


def heard_by(line: HubConnection, what: str) -> dict:
    """The first message with this word that comes to a node agent's connection."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for message in line.received():
            if what in message:
                return message
        time.sleep(0.01)
    raise AssertionError(f"no {what}")


def seen_by(ranks: RemoteRanks, what) -> bool:
    deadline = time.monotonic() + 30
    while not (found := what(ranks)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def test_a_notebook_sees_what_a_node_agent_has_told_and_the_node_agent_hears_orders(folder, hub) -> None:
    line = HubConnection(folder, asks=False)
    line.send({"rank": 1, "report": asdict(NodeReport(WAITING, 7, "recv(source=0)", computed=0.5))})
    assert heard_by(line, "beat"), "so that it knows that the hub is there"
    late = RemoteRanks(folder, ["c1", "c2"], "12")  # a notebook that takes over comes after the report
    assert seen_by(late, lambda ranks: ranks.activity(1).text) == "recv(source=0)"
    assert late.computed(1) == 0.5 and late.dead() == []
    late.interrupt(1)
    assert heard_by(line, "order") == {"rank": 1, "order": "interrupt"}
    late.kill(1)
    assert heard_by(line, "order")["order"] == "kill"
    line.send({"rank": 1, "report": asdict(NodeReport(WAITING, 7, "", ended=137))})
    assert seen_by(late, lambda ranks: ranks.dead()) == [1]
    line.close()


def test_a_rank_is_given_up_when_its_node_agent_has_been_silent_for_long(folder, hub, monkeypatch) -> None:
    line = HubConnection(folder, asks=False)
    line.send({"rank": 0, "report": asdict(NodeReport(WAITING, 1, "barrier"))})
    ranks = RemoteRanks(folder, ["c1"], "12")
    assert seen_by(ranks, lambda ranks: ranks.activity(0).text) == "barrier"
    assert ranks.dead() == []
    monkeypatch.setattr(remote_ranks, "SILENT_SECONDS", 0.0)
    for name in ("end_of", "wait_for_end"):
        monkeypatch.setattr(remote_ranks, name, lambda *_, **__: None)
    monkeypatch.setattr(remote_ranks, "nodes_down", lambda nodes: ())
    assert ranks.dead() == [0] and "rank 0 on c1 cannot be reached any more" in ranks.how_it_ended()
    monkeypatch.setattr(remote_ranks, "nodes_down", lambda nodes: (("c1", "broken fan"),))
    assert ranks.how_it_ended().endswith("cannot be reached any more: Slurm calls c1 down: broken fan.")
    line.close()


def test_who_does_not_know_the_key_hears_nothing(folder, hub) -> None:
    known = json.loads(hub_file(folder).read_text())
    assert hub_file(folder).stat().st_mode & 0o077 == 0
    line = HubConnection(folder, asks=True)
    assert line.ask({"reports": True}) == {}
    known["key"] = zmq.curve_keypair()[0].decode()
    hub_file(folder).write_text(json.dumps(known))
    assert HubConnection(folder, asks=True).ask({"reports": True}) is None
    plain = zmq.Context.instance().socket(zmq.REQ)
    plain.linger, plain.rcvtimeo = 0, 500
    plain.connect(known["at"])
    plain.send_json({"reports": True})
    with pytest.raises(zmq.Again):
        plain.recv()
    plain.close()


@pytest.fixture
def exit_status_of(monkeypatch):
    """`exit_status_of(folder, command)` is the exit status of a command under a node agent."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    return lambda folder, *command: NodeAgent(folder, 0, list(command)).run_agent()


def test_a_node_agent_tells_how_its_rank_ended(folder, hub, exit_status_of) -> None:
    assert exit_status_of(folder, "sh", "-c", "exit 3") == 3
    ranks = RemoteRanks(folder, ["c1"], "12")
    assert seen_by(ranks, lambda ranks: ranks.dead()) == [0]
    assert ranks._reports[0].ended == 3


def test_a_node_that_does_not_reach_the_notebook_says_what_to_do(folder, exit_status_of, monkeypatch, capfd) -> None:
    monkeypatch.setattr(node_agent, "UNREACHABLE_SECONDS", 0.2)
    monkeypatch.setattr(node_agent.socket, "gethostname", lambda: "c1")
    hub_file(folder).write_text(json.dumps({"at": "tcp://127.0.0.1:9", "key": zmq.curve_keypair()[0].decode()}))
    monkeypatch.setattr("course_utils.ranks.slurm.hub._LINGER", 0)
    assert exit_status_of(folder, "sleep", "60") == 137, "the rank is not left waiting"
    told = capfd.readouterr().out
    assert told.startswith("c1 reaches nobody at tcp://127.0.0.1:9") and "COURSE_PORTS=" in told
    assert "Start the notebook on a compute node" in told


def test_a_range_of_ports_is_given_to_controller_and_hub(monkeypatch) -> None:
    monkeypatch.delenv("COURSE_PORTS", raising=False)
    assert ports("127.0.0.1") == ([], [])
    monkeypatch.setenv("COURSE_PORTS", "50000-50019")
    monkeypatch.setattr(addresses, "_can_listen", lambda listening, port: port % 5)
    engines, others = ports("127.0.0.1")
    assert engines == [50001, 50002, 50003, 50004, 50006, 50007, 50008, 50009, 50011]
    assert others[0] == 50012
    for text, said in {"50000": "not a range", "50-40": "not a range", "50000-50010": "Ranks on nodes need 10"}.items():
        monkeypatch.setenv("COURSE_PORTS", text)
        with pytest.raises(CourseError, match=said):
            ports("127.0.0.1")
