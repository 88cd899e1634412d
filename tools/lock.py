"""Write requirements.lock: the versions of constraints.txt with the SHA-256 of every file that PyPI has of them.

    .venv/bin/python tools/lock.py      needs uv on the PATH, and a network

uv resolves pyproject.toml for all Pythons and systems at once. The result is written in sections, because nobody needs
all of it: `course` is what `make setup` always installs, `torch` is PyTorch's build on PyPI with all that it brings,
`mpi4py`, `mpich` and `cython` (which builds mpi4py for a site's own MPI) are for MPI, and the others hold what an extra
of pyproject.toml adds to these. The builds that PyTorch offers on its own index, such as `+cpu`, are different files,
and their hashes are not in here.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
OF_TORCH = re.compile(r"torch$|torchvision$|triton$|nvidia-|cuda-")
"""PyTorch, and what its build for CUDA brings along."""
NOT_HERE = re.compile(r"colorama$|pywinpty$")
"""Packages for Windows alone."""
HEAD = """\
# The versions of constraints.txt, with the SHA-256 of each file that PyPI has of them, for all Pythons and systems.
# Written by tools/lock.py. `tools/set-up` installs the sections that it needs; to install them without it, see
# docs/install.md. The builds of PyTorch's own index, such as +cpu, are different files and are not in here.
"""


def resolved(requirements: list[str]) -> dict[str, str]:
    """The lines of every package that is needed for these requirements, by its name."""
    command = ["uv", "pip", "compile", "-", "--universal", "--python-version", "3.11", "--generate-hashes"]
    command += ["-c", "constraints.txt", "--no-annotate", "--no-header", "--no-config", "--quiet"]
    done = subprocess.run(
        command, input="\n".join(requirements), stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
    )
    entries = re.findall(r"^(\S+)(==.*(?:\n .*)*)", done.stdout, flags=re.MULTILINE)
    return {name: name + rest for name, rest in entries if not NOT_HERE.match(name)}


def sections() -> dict[str, list[str]]:
    """Each section's packages, as the lines of a requirements file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    course = resolved([*project["dependencies"], *extras["dev"], *build])
    found = {
        "pip": list(resolved(["pip"]).values()),
        "course": [lines for name, lines in course.items() if not OF_TORCH.match(name)],
        "torch": [lines for name, lines in course.items() if OF_TORCH.match(name)],
    }
    for extra in ("mpi", *sorted(extras.keys() - {"dev", "mpi"})):
        added = resolved([*project["dependencies"], *extras["dev"], *build, *extras[extra]])
        new = {name: lines for name, lines in added.items() if name not in course}
        if extra == "mpi":  # a site with an MPI of its own needs the first alone
            found |= {name: [lines] for name, lines in new.items()}
            found["cython"] = list(resolved(["cython>=3.0.1"]).values())  # what builds mpi4py against that MPI
        else:
            found[extra] = list(new.values())
    return found


def main() -> None:
    """Write the file."""
    try:
        text = "".join(f"\n# [{name}]\n" + "\n".join(lines) + "\n" for name, lines in sections().items())
    except FileNotFoundError:
        sys.exit("tools/lock.py needs uv: https://docs.astral.sh/uv/")
    LOCK.write_text(HEAD + text)


if __name__ == "__main__":
    main()
