"""The lists of tools/fetch-wheels: what a different machine needs of the lock file, and what is in a folder of wheels.

It runs with the Python of an environment that has pip, whose copy of `packaging` reads markers and names of files.
"""

import hashlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from pip._vendor.packaging.markers import Marker
from pip._vendor.packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

LOCK = Path(__file__).resolve().parents[1] / "requirements.lock"


def needed(lines: Iterable[str], python: str, system: str, processor: str) -> list[str]:
    """The lines of a requirements file whose markers hold on a machine, named as by `uname`, without these markers."""
    machine = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "os_name": "posix",
        "platform_system": system,
        "sys_platform": system.lower(),
        "platform_machine": processor,
    }
    taken, found = True, []
    for line in lines:
        if not line.startswith(" "):
            head, _, rest = line.partition(" ; ")
            marker = rest.removesuffix("\n").removesuffix("\\").strip()
            taken = not marker or Marker(marker).evaluate(machine)
            line = line if not marker else head + (" \\\n" if rest.endswith("\\\n") else "\n")
        if taken:
            found.append(line)
    return found


def files_in(folder: Path) -> list[Path]:
    """The wheels and source archives of a folder."""
    return sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])


def listed(folder: Path) -> str:
    """The folder's files as a lock file, in the sections of the course's own; what that doesn't name is torch's."""
    sections: dict[str, str] = {}
    section = ""
    for line in LOCK.read_text().splitlines():
        if found := re.fullmatch(r"# \[(.+)\]", line):
            section = found[1]
        elif found := re.match(r"([\w.-]+)==", line):
            sections.setdefault(canonicalize_name(found[1]), section)
    entries: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for file in files_in(folder):
        parse = parse_wheel_filename if file.suffix == ".whl" else parse_sdist_filename
        name, version, *_ = parse(file.name)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        of_course = sections.get(name) in ("pip", "course", "mpi4py", "cython", "mpich")
        entries[sections[name] if of_course else "torch"][f"{name}=={version}"].append(digest)
    text = ""
    for name, requirements in entries.items():
        text += f"\n# [{name}]\n"
        for requirement, digests in requirements.items():
            text += " \\\n    ".join([requirement, *(f"--hash=sha256:{digest}" for digest in digests)]) + "\n"
    return text


def weight(folder: Path) -> str:
    """How many files a folder has, and how much they weigh together."""
    files = files_in(folder)
    return f"{len(files)} files of {sum(file.stat().st_size for file in files) / 1e6:,.0f} MB together"


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "for":
        sys.stdout.writelines(needed(sys.stdin, *arguments))
    elif what == "list":
        print(listed(Path(*arguments)), end="")
    else:
        print(weight(Path(*arguments)))
