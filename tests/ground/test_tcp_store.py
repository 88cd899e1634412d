"""Where the ranks of a torch group meet: through a file where its disk locks files for all, else at one address."""

import fcntl
import socket
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from course_utils import tcp_store as module
from course_utils.errors import CourseError
from course_utils.tcp_store import own_address, tcp_store

SOON = timedelta(seconds=20)


def listens_at() -> set[str]:
    found = psutil.Process().net_connections("tcp")
    return {f"{one.laddr.ip}:{one.laddr.port}" for one in found if one.status == psutil.CONN_LISTEN}


def test_a_store_listens_on_its_own_address_only() -> None:
    before = listens_at()
    store = tcp_store("127.0.0.1", 0, 2, SOON, serve=True)
    assert listens_at() - before == {f"127.0.0.1:{store.port}"}
    other = tcp_store("127.0.0.1", store.port, 2, SOON, serve=False)
    other.set("from", "rank 1")
    assert store.get("from") == b"rank 1"


def test_a_port_that_is_taken_is_told_with_the_variable_that_names_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CourseError, match=rf"^Port {port} of 127\.0\.0\.1, .* is in use\. `export MASTER_PORT="):
            tcp_store("127.0.0.1", port, 2, SOON, serve=True)


@pytest.mark.parametrize("address", ["127.0.1.1", "192.0.2.1"], ids=["loopback", "another machine's"])
def test_a_name_that_means_something_else_elsewhere_is_served_on_all_addresses(monkeypatch, address: str) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0))]
    monkeypatch.setattr(module.socket, "getaddrinfo", lambda *_, **__: found)
    assert module._listening("gpu01", 0) is None


def test_the_address_is_that_of_gloos_network(monkeypatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    assert own_address() == "127.0.0.1"
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "no such network")
    assert own_address() == socket.gethostname()


def what_locks_do(comm, how: str, folder: str) -> bool:
    """Whether a disk is found fit whose locks are good, not there at all, or good on each machine only."""
    from course_utils.ranks.engine import torch_group

    def none_there(*_) -> None:
        raise OSError(38, "Function not implemented")

    disks = {"good": fcntl.flock, "none": none_there, "each machine's own": lambda *_: None}
    plain = torch_group.fcntl
    torch_group.fcntl = type("Disk", (), {**vars(fcntl), "flock": staticmethod(disks[how])})
    try:
        return torch_group.locks_hold(comm, Path(folder) / "locks")
    finally:
        torch_group.fcntl = plain


@pytest.mark.parametrize(("how", "fit"), [("good", True), ("none", False), ("each machine's own", False)])
def test_locks_are_tried_out_before_a_file_is_trusted(four_ranks, tmp_path, how: str, fit: bool) -> None:
    assert four_ranks.run(what_locks_do, how, str(tmp_path)).results == [fit] * 4


def trust_locks(comm, well: bool | None) -> None:
    from course_utils.ranks.engine import torch_group
    from course_utils.trace.torch.process_groups import close_groups

    close_groups()
    torch_group._lock.clear()
    if well is not None:
        torch_group._lock[comm.size] = well


def add_up() -> tuple[float, str]:
    import torch
    import torch.distributed as dist
    from torch.distributed import distributed_c10d

    x = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(x)
    store = distributed_c10d._world.pg_map[dist.group.WORLD][1]
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return x.item(), type(store).__name__


def test_without_locks_ranks_meet_at_an_address_and_add_up(four_ranks) -> None:
    try:
        four_ranks.run(trust_locks, False)
        assert four_ranks.run(add_up, backend="gloo").results == [(6.0, "TCPStore")] * 4
    finally:
        four_ranks.run(trust_locks, None)
    assert four_ranks.run(add_up, backend="gloo").results == [(6.0, "FileStore")] * 4
