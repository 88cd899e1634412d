"""ipyparallel's controller, as a module that can be forked or run: `python -m …ranks.engine.controller OPTION…`."""

import sys
from pathlib import Path

from ipyparallel.controller.app import IPController


def main(*options: str) -> None:
    """Serve as a controller to the end."""
    IPController.launch_instance(argv=[*options, f"--IPController.work_dir={Path.cwd()}"])


if __name__ == "__main__":
    main(*sys.argv[1:])
