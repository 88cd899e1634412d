"""The course in a hosted notebook, such as Colab's or Kaggle's: `%run /tmp/course/tools/hosted.py` in its first cell.

The kernel there has an IPython, an ipykernel and a torch of the host's, and nothing of it is touched. The ranks get an
environment of their own, .venv beside this folder, made by `tools/set-up`. The notebook borrows four packages of it,
and finds them before any that the host may have by their names.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
LENT = ("cloudpickle", "greenlet", "ipyparallel", "mpi4py")
"""What notebook and ranks must have of one version, and what virtual ranks are made of."""


def have_uv() -> None:
    """Bring uv, which makes environments where the host's Python cannot, and quickly."""
    if not shutil.which("uv"):
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "uv"]
        subprocess.run(pip, capture_output=True, check=False)  # without it, `tools/set-up` tries pip


def set_up() -> bool:
    """Make the ranks' environment, from this Python; what there is to say is printed."""
    command = [str(ROOT / "tools" / "set-up")]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, env={**os.environ, "PYTHON": sys.executable}, **both) as process:
        for line in process.stdout:
            if not line.startswith("Ready."):  # and what to type into a terminal next
                print(line, end="", flush=True)
    return process.returncode == 0


def lend() -> Path:
    """A folder with those packages of the ranks' that the notebook needs, and no others."""
    folder = VENV / "lent"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    [packages] = VENV.glob("lib/python3*/site-packages")
    for name in LENT:
        (folder / name).symlink_to(packages / name)
    return folder


def main() -> None:
    """Set up, and let this notebook import the course; its ranks will run in their own environment."""
    have_uv()
    if not set_up():
        print("The course is not set up: the lines above say why. When that is mended, run this cell once more.")
        return
    sys.path[:0] = [path for path in (str(lend()), str(ROOT)) if path not in sys.path]
    os.environ["COURSE_PYTHON"] = str(VENV / "bin" / "python")
    for library in VENV.glob("lib/libmpi.so.*"):  # MPICH's, which is not where this Python looks
        os.environ["MPI4PY_LIBMPI"] = str(library)
    print("Ready: the cells of any lesson can run now. Notes and reports go when this machine is given back.")


if __name__ == "__main__":
    main()
