"""`make lab` and `course lab`: JupyterLab on the course, for this machine's user alone.

It listens on the loopback address only, lands on the first lesson, asks nothing, and prints its address. In a
container, `--address 0.0.0.0` lets the machine around it in; whoever comes needs the token all the same. Where the
course is installed for all and its folder cannot be written to, it opens the user's own copy of the notebooks.
"""

import argparse
import errno
import os
import socket
import sys
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import zmq
from jupyter_core.paths import jupyter_runtime_dir

from course_utils import learners_copy, settings, system
from course_utils.errors import CourseError
from course_utils.own_files import trial_file
from course_utils.syllabus import LESSONS, ROOT
from course_utils.words import PAGE_WRAPS

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp

ADDRESS = "127.0.0.1"
FIRST_PORT = 8888
PORTS_TO_TRY = 100
DEFAULT_COPY = Path("~/course")
STYLE = ROOT / ".jupyter" / "custom"
"""The folder of the style sheet that JupyterLab's pages get besides their own."""


def main(arguments: list[str] | None = None) -> int:
    """Run JupyterLab until it is stopped; returns the exit status."""
    parser = argparse.ArgumentParser(prog="course lab", description=__doc__)
    parser.add_argument("--port", default=str(FIRST_PORT), help=f"the port to listen on (default: {FIRST_PORT})")
    parser.add_argument("--address", default=ADDRESS, help=f"the address to listen on (default: {ADDRESS})")
    parser.add_argument("--copy", type=Path, help="the folder of your own copy of the notebooks, which is opened")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    options = parser.parse_args(arguments)
    try:
        wanted = read_port(options.port)
        port = free_port(wanted, options.address)
        check_jupyters_folder()
        copy = options.copy or settings.COPY.value() or (None if may_write() else DEFAULT_COPY)
        if copy:
            copy = copy.expanduser()
            bring_up_to_date(copy)
    except CourseError as error:
        print(error, file=sys.stderr)
        return 2
    if port != wanted:
        print(f"Port {wanted} is in use, so JupyterLab takes port {port}.", flush=True)
    serve(port, options.address, copy, browser=not options.no_browser and has_browser())
    return 0


def may_write() -> bool:
    """Whether this user may change the course's own notebooks: they belong to a centre where not."""
    return os.access(LESSONS[0].notebook.parent, os.W_OK)


def check_jupyters_folder() -> None:
    """JupyterLab needs a folder for files of its own, mostly in the home directory.

    Raises:
        CourseError: there is no home directory, or nothing can be written to that folder.
    """
    try:
        folder = Path(jupyter_runtime_dir())
    except RuntimeError:
        raise CourseError("You have no home directory here. `export HOME=FOLDER` names a folder of yours.") from None
    try:
        with trial_file(folder):
            pass
    except OSError as error:
        remedy = "Make room there." if error.errno in (errno.ENOSPC, errno.EDQUOT) else "Is it yours?"
        raise CourseError(
            f"JupyterLab cannot write to {folder} ({error.strerror}), where it keeps files of its own. {remedy} "
            "`export JUPYTER_RUNTIME_DIR=FOLDER JUPYTER_DATA_DIR=FOLDER JUPYTER_CONFIG_DIR=FOLDER` names others."
        ) from None


def bring_up_to_date(copy: Path) -> None:
    """Bring the user's copy of this release up to date, and say what was new.

    Raises:
        CourseError: the folder is no copy, or cannot be written to.
    """
    try:
        news = learners_copy.update(ROOT, copy)
    except CourseError as error:
        raise CourseError(f"{error} For example: `export COURSE_COPY=~/course-copy`.") from None
    except OSError as error:
        remedy = "Make room, or choose" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "Choose"
        raise CourseError(
            f"{copy} could not be brought up to date ({error.strerror}). None of your files was changed. {remedy} a "
            f"different folder: `export {settings.COPY.name}=FOLDER`."
        ) from None
    print(f"Your copy of the course is {copy}: {news.line()}.", flush=True)


def read_port(text: str) -> int:
    """The port that a text names.

    Raises:
        CourseError: it names none.
    """
    if text.isascii() and text.isdecimal() and 0 < int(text) < 65536:
        return int(text)
    raise CourseError(f"{text!r} is not a port. Choose a number from 1024 to 65535: `make lab PORT=8899`.")


def free_port(first: int, address: str = ADDRESS) -> int:
    """The first port from `first` on that nobody listens on at this address.

    Raises:
        CourseError: there is none, this user may not use it, or the address is not one of this machine's.
    """
    for port in range(first, min(first + PORTS_TO_TRY, 65536)):
        with socket.socket() as probe:
            # A port on which the last server's connections are still fading out is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
                return port
            except OSError as error:
                if error.errno == errno.EACCES:
                    raise CourseError(
                        f"Only root may use port {port}. Choose one from 1024 on: `make lab PORT=8899`."
                    ) from None
                if error.errno != errno.EADDRINUSE:
                    raise CourseError(
                        f"{address!r} is not an address of this machine. 0.0.0.0 means all of them."
                    ) from None
    raise CourseError(f"All ports from {first} on are in use. Choose a different one: `make lab PORT=9900`.")


def has_browser() -> bool:
    """Whether a window can be opened here. A browser in the terminal would only get in the way."""
    if os.environ.get("BROWSER"):
        return True
    if system.LINUX and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def landing() -> str:
    """The path of the page to open first: the first lesson."""
    first = LESSONS[0].notebook
    return f"/lab/tree/{quote(str(first.relative_to(ROOT)))}" if first.exists() else "/lab"


def serve(port: int, address: str, copy: Path | None, browser: bool) -> None:
    """Start JupyterLab on a port of an address, say where it is, and serve until stopped.

    Args:
        copy: the folder to serve; None for the course's own.
    """
    put_before("JUPYTER_CONFIG_PATH", str(ROOT / ".jupyter"))
    put_before("PATH", str(Path(sys.executable).parent))  # so a terminal of JupyterLab knows the command `course`
    if copy:
        os.environ.setdefault(settings.DATA.name, str(copy / "data"))
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # this Python's kernel, before another of the same name
    os.environ[PAGE_WRAPS] = "1"
    # What checks addresses in JSON takes a third of the start to import; nothing here asks for such a check.
    sys.modules.setdefault("rfc3987_syntax", None)
    from jupyterlab.labapp import LabApp

    server = LabApp.initialize_server(server_options(port, address, copy), static_custom_path=[str(STYLE)])
    server.identity_provider.token_generated = False  # or Jupyter says in six lines what `announce` says in two
    server.io_loop.add_callback(announce, server, browser)  # comes after the server's own callback, which listens
    server.start()


def put_before(variable: str, path: str) -> None:
    """Put a folder before the others in a variable such as PATH."""
    os.environ[variable] = os.pathsep.join(filter(None, (path, os.environ.get(variable, ""))))


def announce(server: "ServerApp", browser: bool) -> None:
    """Say where the server is that now listens, and open it."""
    token = server.identity_provider.token
    address = f"http://{ADDRESS}:{server.port}{landing()}{f'?token={token}' if token else ''}"
    print(f"JupyterLab is at\n    {address}\nPress Ctrl+C to stop it.", flush=True)
    if "SSH_CONNECTION" in os.environ:
        forward = f"ssh -L {server.port}:{ADDRESS}:{server.port}"
        print(
            f"On your own computer, run `{forward} {socket.gethostname()}`, then open that address.",
            flush=True,
        )
    if browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def server_options(port: int, address: str = ADDRESS, copy: Path | None = None) -> list[str]:
    """What JupyterLab is told on its command line. Which tabs were open is kept with the course or the copy."""
    own = copy / ".course" if copy else ROOT / ".jupyter"
    options = [
        f"--ServerApp.ip={address}",
        f"--ServerApp.port={port}",
        f"--ServerApp.root_dir={copy or ROOT}",
        "--ServerApp.open_browser=False",
        "--ServerApp.answer_yes=True",
        "--ServerApp.log_level=ERROR",
        "--LabApp.log_level=ERROR",
        "--LabApp.custom_css=True",
        f"--LabApp.default_url={landing()}",
        f"--LabApp.workspaces_dir={own / 'workspaces'}",
    ]
    if zmq.has("curve"):  # else each kernel warns in the terminal of somebody who may be eavesdropping
        options.append("--KernelManager.transport_encryption=auto")
    return [*options, "--allow-root"] if os.geteuid() == 0 else options


if __name__ == "__main__":
    sys.exit(main())
