"""Lightning on ranks that exist already: where it is found, and what its Trainer is told about them.

Lightning is an extra: `tools/set-up-beside lightning` puts it beside the course, into .venv/lightning. It is imported
on the ranks alone.

Source: "Run on an on-prem cluster (expert)", <https://lightning.ai/docs/pytorch/stable/clouds/cluster_expert.html>.
"""

import importlib
import importlib.util
import logging
import sys
import sysconfig
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import torch.distributed as dist

from course_utils.errors import CourseError
from course_utils.torchvision_repair import load_torchvision

PACKAGE = "pytorch_lightning"
BESIDE = "tools/set-up-beside lightning"
_BY_PIP = 'pip install -c constraints.txt -e ".[lightning]"'


def is_there() -> bool:
    """Whether Lightning can be imported, from where the course's packages are or from beside them."""
    beside = str(Path(sys.prefix) / "lightning")
    packages = sysconfig.get_path("purelib", vars={"base": beside, "platbase": beside})
    if packages not in sys.path and Path(packages).is_dir():
        sys.path.append(packages)  # at the end: what the course has itself comes first
    importlib.invalidate_caches()
    return importlib.util.find_spec(PACKAGE) is not None


def missing() -> str:
    """In a line: how to bring it."""
    command = BESIDE if Path(sys.prefix).name == ".venv" else _BY_PIP
    return f"Lightning is not installed here. Run `{command}` in the course's folder, then this cell again."


def load_lightning() -> ModuleType:
    """`import pytorch_lightning`, without its advertisements.

    Raises:
        CourseError: it is not installed.
    """
    if not is_there():
        raise CourseError(missing())

    load_torchvision()  # Lightning's metrics import it
    logging.getLogger(PACKAGE).setLevel(logging.ERROR)
    logging.getLogger("lightning_fabric").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=f"{PACKAGE}|lightning_fabric")
    return importlib.import_module(PACKAGE)


def on_these_ranks() -> dict[str, Any]:
    """For `Trainer(…)`: DDP among the ranks of torch.distributed's default group, on processors; it writes no file.

    On a cluster, where Lightning starts the processes or finds those of Slurm, one says instead `strategy="ddp"`,
    `devices=4`, `num_nodes=10`. The ranks exist only from `fit` on then, so nothing before it may ask for the rank.
    """
    load_lightning()
    from pytorch_lightning.plugins.environments import ClusterEnvironment
    from pytorch_lightning.strategies import DDPStrategy

    class OwnRanks(ClusterEnvironment):
        """Who this process is, for Lightning."""

        creates_processes_externally = True
        main_address, main_port = "", 0  # they have met already

        @staticmethod
        def detect() -> bool:
            return True

        def world_size(self) -> int:
            return dist.get_world_size()

        def set_world_size(self, size: int) -> None:
            pass

        def global_rank(self) -> int:
            return dist.get_rank()

        def set_global_rank(self, rank: int) -> None:
            pass

        def local_rank(self) -> int:
            return dist.get_rank()

        def node_rank(self) -> int:
            return 0

    class OwnDDP(DDPStrategy):
        """Lightning's DDP, with nothing to launch: in an interactive session it would refuse to."""

        def _configure_launcher(self) -> None:
            self._launcher = None

    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    strategy = OwnDDP(cluster_environment=OwnRanks(), process_group_backend="gloo")
    return {"accelerator": "cpu", "devices": dist.get_world_size(), "strategy": strategy} | quiet
