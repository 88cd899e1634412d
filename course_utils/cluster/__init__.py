"""Owns every process: starts ranks, takes running ones over, and sees to it that none is left behind."""

import atexit
import contextlib
import importlib
import json
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.cluster.folder import RanksFolder, sweep
from course_utils.cluster.run import Attempt, Run, per_rank
from course_utils.errors import CourseError
from course_utils.words import count

if TYPE_CHECKING:
    from course_utils.cluster.connection import Connection
    from course_utils.cluster.network import Network
    from course_utils.cluster.ranks import Ranks

__all__ = ["Attempt", "Ranks", "Run", "current", "per_rank", "start", "sweep"]

START_SECONDS = 60.0
_current: "Ranks | None" = None


def __getattr__(name: str):
    if name == "Ranks":
        from course_utils.cluster.ranks import Ranks

        return Ranks
    raise AttributeError(name)


def current() -> "Ranks | None":
    """The ranks that this notebook started or took over, while they live."""
    return _current if _current is not None and _current.connection is not None else None


def start(
    ranks: int = 4,
    link: str | None = None,
    latency: str | None = None,
    slow: Mapping[int, str] | None = None,
    ranks_per_node: int = 1,
) -> "Ranks":
    """Start so many ranks on this machine, or take over running ones; prints one line that says what there is.

    A second call with the same arguments gives back the same ranks, in this notebook and in the next. With others it
    ends the running ranks and starts new ones.

    Args:
        link: such as "200 Mbit/s". Each rank becomes a node of its own, behind a link of this rate in each direction;
            MPI and torch's gloo send over the links and nothing else. Where the system forbids it, a line says why.
        latency: such as "1 ms": how long a message takes from one node to another, beside what the rate costs.
        slow: nodes with a link of their own rate, such as {2: "20 Mbit/s"}.
        ranks_per_node: how many neighbouring ranks share a node, and its link. Among themselves they need no link.

    Raises:
        CourseError: no MPI here, or a number that makes no sense.
    """
    global _current
    from course_utils.cluster.cores import allowed_cores
    from course_utils.cluster.local import check_number
    from course_utils.cluster.network import Network, possible
    from course_utils.cluster.ranks import Ranks

    check_number(ranks, allowed_cores())
    network = possible(Network.asked(ranks, link, latency, slow, ranks_per_node))
    running = current()
    same = running is not None and _are(running.facts, ranks, network)
    if running is not None and same and running.healthy:
        print(running.facts["line"])
        _use(running)
        return running
    if running is not None:
        if not same:
            before = count(running.world_size, "rank")
            print(f"Ended what was running: {before}, with all their variables.")
        running.stop()
    taken_over = _take_over(ranks, network)
    found = taken_over or _launch(ranks, network)
    _current = Ranks(*found, start_again=lambda: _launch(ranks, network))
    print(_current.facts["line"])
    if taken_over:
        print("They are shared with another notebook that is open: what one of them defines, the other sees.")
    _use(_current)
    return _current


def _are(facts: dict, ranks: int, network: "Network | None") -> bool:
    """Do the facts speak of so many ranks, behind such links?"""
    return len(facts.get("ranks", ())) == ranks and facts.get("network") == (network.facts if network else None)


def _use(ranks: "Ranks") -> None:
    from course_utils.cluster.px import register

    register(ranks)


def _take_over(ranks: int, network: "Network | None") -> "tuple[Connection, dict] | None":
    """Connect to ranks of another notebook of this user, if there are as many and they are well."""
    for folder in RanksFolder.all():
        if not _are(folder.facts(), ranks, network) or not folder.living_owners():
            continue
        folder.own()
        atexit.register(folder.leave)
        with contextlib.suppress(Exception):
            return _connect(folder, ranks, network, time.monotonic() + 10.0, lambda: None)
        folder.disown()
    return None


def _launch(ranks: int, network: "Network | None") -> "tuple[Connection, dict]":
    """Start controller and ranks, and wait until every rank has introduced itself."""
    from course_utils.cluster import local
    from course_utils.cluster.progress_bar import ProgressBar

    sweep()
    folder = RanksFolder.new()
    folder.own()
    atexit.register(folder.leave)
    try:
        local.launch(folder, ranks, network)
        importlib.import_module("course_utils.cluster.connection")  # slow, and the ranks are busy coming up
        deadline = time.monotonic() + START_SECONDS
        with ProgressBar(f"starting {count(ranks, 'rank')}") as bar:
            return _connect(folder, ranks, network, deadline, bar.look)
    except BaseException:
        folder.end()
        raise


def _connect(
    folder: RanksFolder, ranks: int, network: "Network | None", deadline: float, look
) -> "tuple[Connection, dict]":
    """A client for the ranks of a folder, ordered by rank, and what they said of themselves.

    Raises:
        CourseError: they did not come up; says what they wrote.
    """
    from course_utils.cluster import local

    def wait_until(ready) -> None:
        while not ready():
            look()
            if time.monotonic() > deadline or not folder.processes():
                raise CourseError(f"The ranks did not start. What they wrote:\n{local.log_of(folder)}")
            time.sleep(0.02)

    wait_until(lambda: _complete(folder.connection_file))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ipyparallel as ipp

        from course_utils.cluster.connection import Connection, introductions

        client = ipp.Client(str(folder.connection_file), timeout=30)
    wait_until(lambda: len(client.ids) >= ranks)
    answers = sorted(introductions(client, _paths()).items(), key=lambda answer: answer[1]["rank"])
    introduced = [answer for _, answer in answers]
    connection = Connection(folder, client, [(engine, one["pid"], one["shell"]) for engine, one in answers])
    facts = {
        "ranks": introduced,
        "line": _line(introduced, network),
        "network": network.facts if network else None,
    }
    folder.write_facts(**facts, shared_memory=sorted(folder.shared_memory()))
    return connection, facts


def _complete(file: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return bool(json.loads(file.read_text()))
    return False


def _paths() -> list[str]:
    """What ranks need on their path to import what this notebook can."""
    return [path for path in sys.path if path and Path(path).is_dir()]


def _line(introduced: list[dict], network: "Network | None") -> str:
    from course_utils.cluster.cores import allowed_cores
    from course_utils.machine import gpus

    threads, cores, devices = introduced[0]["threads"], allowed_cores(), gpus()
    links = f", {network}" if network else ""
    return (
        f"{count(len(introduced), 'rank')} on this machine{links}: {introduced[0]['mpi']}, {count(cores, 'core')}, "
        f"{count(threads, 'thread')} each, {count(len(devices), 'GPU') if devices else 'no GPU'}"
    )
