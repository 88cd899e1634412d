"""Owns every process: starts ranks, takes running ones over, and sees to it that none is left behind."""

import atexit
import contextlib
import importlib
import json
import sys
import time
import warnings
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_utils import settings
from course_utils.errors import CourseError
from course_utils.machine import ranks_python
from course_utils.progress_bar import ProgressBar
from course_utils.ranks.launch_sites import ThisMachine, site_of
from course_utils.ranks.links.network import EmulatedNetwork
from course_utils.ranks.processes.launch_ranks import is_port_taken, log_of
from course_utils.ranks.processes.ranks_folder import RanksFolder, full_disk_in_words, lock_on, runtime_root, sweep
from course_utils.ranks.sharing import (
    announce,
    changed_files_text,
    have_started,
    is_suitable,
    offer,
    offered_folder,
    other_installations_text,
)
from course_utils.words import count, wrapped

if TYPE_CHECKING:
    from course_utils.ranks.connection import Connection
    from course_utils.ranks.launch_sites import LaunchSite
    from course_utils.ranks.ranks import Ranks
    from course_utils.ranks.virtual.virtual_ranks import VirtualRanks

TAKE_OVER_SECONDS = 10.0
_STARTS = 3
"""How often ranks are started where somebody else takes a port between its choice and its use."""
_WIDTH = 88  # of a line that JupyterLab, 1280 pixels wide, does not break within a word
_current: "Ranks | None" = None


def current() -> "Ranks | None":
    """The ranks that this notebook started or took over, while they live."""
    return _current if _current is not None and _current.connection is not None else None


def start(
    ranks: int = 4,
    link: str | None = None,
    latency: str | None = None,
    slow: Mapping[int, str] | None = None,
    ranks_per_node: int = 1,
    where: str | None = None,
    **job: Any,
) -> "Ranks | VirtualRanks":
    """Start this many ranks, or take over running ones; prints one line that says what there is.

    A second call with the same arguments gives back the same ranks, in this notebook and in the next that runs the same
    version of the course in the same environment; then a second line says so. With others it ends the running ranks and
    starts new ones.

    Args:
        link: such as "200 Mbit/s". Each rank becomes a node of its own, behind a link of this rate in each direction;
            MPI and torch's gloo send over the links and nothing else. Where the system forbids it, a line says why.
        latency: such as "1 ms": how long a message takes from one node to another, beside what the rate costs.
        slow: nodes with a link of their own rate, such as {2: "20 Mbit/s"}.
        ranks_per_node: how many neighbouring ranks share a node, and its link. Among themselves they need no link.
        where: None for this machine; "slurm" for a batch job on a cluster's nodes; "nowhere" for virtual ranks: no
            process, no network, this kernel alone, thousands of them, in virtual time. They end nothing that runs.
        job: for Slurm: `nodes`, `gpus_per_node`, `minutes`, `partition`, `cores_per_rank`, `memory`. For virtual ranks:
            `network`, α–β or a topology; `scale`, for how many numbers each number stands.

    Raises:
        CourseError: no MPI here, or no Slurm, or a number that makes no sense; or this is a rank itself.
    """
    global _current
    if where == "nowhere":
        from course_utils.ranks.virtual.virtual_ranks import start_virtual

        return start_virtual(ranks, link, latency, slow, ranks_per_node, **job)
    if settings.RANK.value() is not None:
        raise CourseError("This code runs on a rank already. Start ranks in the notebook, in a cell without `%%px`.")
    site = site_of(ranks, EmulatedNetwork.from_words(ranks, link, latency, slow, ranks_per_node), where, job)
    running, rejected = current(), []
    if running is not None:
        same = _are_wanted(running, ranks, site)
        if same and running.healthy:
            print(running.facts["line"])
            running.tell_who_shares_them()
            _use(running)
            return running
        if not same and not running.other_notebooks():
            before = count(running.world_size, "rank")
            print(f"Stopped the {before} that had been started before. All variables on them are lost.")
        rejected = [running.folder.path]
        running.stop()
    found = _on_free_ports(lambda: _take_over_or_launch(ranks, site, rejected))
    from course_utils.ranks.ranks import Ranks

    _current = Ranks(*found, start_again=lambda: _on_free_ports(lambda: _launch_anew(ranks, site)))
    print(_current.facts["line"])
    _current.tell_who_shares_them()
    for text in (changed_files_text(_current.facts), other_installations_text(_current.folder)):
        if text:
            print(wrapped(text))
    _use(_current)
    return _current


def start_separate_ranks(ranks: int, network: EmulatedNetwork | None = None) -> "Ranks":
    """Start ranks that this notebook's `start` and `%%px` know nothing of; their `stop` ends them. Prints nothing.

    Raises:
        CourseError: they do not start.
    """
    from course_utils.ranks.ranks import Ranks

    site = ThisMachine(ranks, network)

    def launch() -> "tuple[Connection, dict]":
        return _on_free_ports(lambda: _launch_anew(ranks, site, offered=False))

    return Ranks(*launch(), start_again=launch)


def _are_wanted(running: "Ranks", ranks: int, site: "LaunchSite") -> bool:
    """Are this notebook's own ranks as many, at such a place? They stay its own, whatever it has set meanwhile."""
    same = all(running.facts.get(name) == value for name, value in site.facts.items())
    return same and running.world_size == ranks


def _use(ranks: "Ranks") -> None:
    from course_utils.ranks.px_magic import register

    register(ranks)


def _take_over_or_launch(ranks: int, site: "LaunchSite", rejected: Collection[Path]) -> "tuple[Connection, dict]":
    """Connect to such ranks of another notebook, once they have started, or start some for this and later notebooks.

    Args:
        rejected: the folders of ranks that are not wanted.
    """
    rejected = set(rejected)
    while True:
        own = None
        try:
            with lock_on(runtime_root()):  # of two notebooks that begin at the same moment, one starts and one waits
                found = offered_folder(ranks, site, rejected)
                if found is None:
                    own = site.folder()
                    offer(own, ranks, site)
            if own:
                return _launch(own, ranks, site)
        except BaseException:
            if own:
                own.leave()
            raise
        if found:
            if taken_over := _take_over(found, ranks, site):
                return taken_over
            rejected.add(found.path)


def _take_over(folder: RanksFolder, ranks: int, site: "LaunchSite") -> "tuple[Connection, dict] | None":
    """Connect to ranks of another notebook; None where they have ended meanwhile, or do not answer."""
    with ProgressBar(f"starting {count(ranks, 'rank')}") as bar:
        while folder.is_kept() and not have_started(folder):
            bar.refresh()
            time.sleep(0.05)
    if not is_suitable(folder, ranks, site) or not folder.join():
        return None
    try:
        atexit.register(folder.leave)
        deadline = time.monotonic() + TAKE_OVER_SECONDS

        def check() -> None:
            if time.monotonic() > deadline:
                raise CourseError("These ranks do not answer.")

        return _connect(folder, ranks, site, check)
    except Exception:
        folder.leave()
        return None
    except BaseException:
        folder.leave()
        raise


class _PortTaken(CourseError):
    """ipyparallel's controller chooses free ports first and listens on them later; another program was between."""


def _on_free_ports(attempt: "Callable[[], tuple[Connection, dict]]") -> "tuple[Connection, dict]":
    """Start ranks, and again where another program takes a port of theirs."""
    for _ in range(_STARTS - 1):
        with contextlib.suppress(_PortTaken):
            return attempt()
    return attempt()


def _launch_anew(ranks: int, site: "LaunchSite", offered: bool = True) -> "tuple[Connection, dict]":
    """Start ranks, whether or not there are some already.

    Args:
        offered: to other notebooks too.
    """
    folder = site.folder()
    try:
        if offered:
            offer(folder, ranks, site)
        return _launch(folder, ranks, site)
    except BaseException:
        folder.leave()
        raise


def _launch(folder: RanksFolder, ranks: int, site: "LaunchSite") -> "tuple[Connection, dict]":
    """Start controller and ranks, and wait until every rank has introduced itself."""
    sweep()
    with full_disk_in_words(folder.path.parent):
        folder.own()
        atexit.register(folder.leave)
        site.launch(folder)
        importlib.import_module("course_utils.ranks.engine_connection")  # slow, and the ranks are busy coming up
        with ProgressBar(f"starting {count(ranks, 'rank')}") as bar:
            connection, facts = _connect(folder, ranks, site, site.startup_check(folder, bar))
        announce(folder, facts)
        return connection, facts


def _connect(
    folder: RanksFolder, ranks: int, site: "LaunchSite", check: Callable[[], None]
) -> "tuple[Connection, dict]":
    """A client for the ranks of a folder, ordered by rank, and what they said of themselves.

    Args:
        check: called while they come up; raises `CourseError` when they take too long.

    Raises:
        _PortTaken: its controller cannot listen.
    """

    def wait_until(ready: Callable[[], bool]) -> None:
        while not ready():
            if is_port_taken(folder):
                first = "The ranks did not start: other programs take the ports that they choose. Run this cell again."
                raise _PortTaken(f"{first} What they wrote:\n{log_of(folder)}")
            check()
            time.sleep(0.02)

    wait_until(lambda: _is_complete(folder.connection_file))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ipyparallel as ipp

        from course_utils.ranks.engine_connection import EngineConnection, request_introductions

        client = ipp.Client(str(folder.connection_file), timeout=30)
    wait_until(lambda: len(client.ids) >= ranks)
    asked = request_introductions(client, _import_paths())
    wait_until(lambda: all(answer.ready() for answer in asked.values()))
    answers = sorted(((engine, answer.get()) for engine, answer in asked.items()), key=lambda pair: pair[1]["rank"])
    introduced = [answer for _, answer in answers]
    if [answer["rank"] for answer in introduced] != list(range(ranks)):
        raise CourseError(site.unrelated_processes_text())
    connection = EngineConnection(folder, client, [engine for engine, _ in answers], site.control(folder, introduced))
    return connection, {"ranks": introduced, "line": _description(introduced, site), **site.facts}


def _is_complete(file: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return bool(json.loads(file.read_text()))
    return False


def _import_paths() -> list[str]:
    """What ranks need on their path to import what this notebook can; but for packages, where they have their own."""
    own_packages = ranks_python() != sys.executable
    return [path for path in sys.path if Path(path).is_dir() and path and not (own_packages and "-packages" in path)]


def _description(introduced: list[dict], site: "LaunchSite") -> str:
    threads, devices = introduced[0]["threads"], introduced[0]["gpus"]
    line = (
        f"{count(len(introduced), 'rank')} {site.description(introduced)}, {count(threads, 'thread')} each, "
        f"{count(devices, 'GPU') if devices else 'no GPU'}"
    )
    return wrapped(line, _WIDTH)
