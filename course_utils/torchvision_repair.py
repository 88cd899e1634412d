"""Import torchvision where its wheel and torch's do not fit together.

The wheel of torchvision 0.28.0 is linked against CUDA. Beside a CPU build of torch its compiled operators do not load,
and `import torchvision` fails with "operator torchvision::nms does not exist", because it describes two of those
operators to torch without asking whether they are there. Declaring the two first lets the import pass; the operators
themselves stay missing, and the course needs none of them.

`python -m course_utils.torchvision_repair FILE …` runs a program that imports torchvision by itself.
"""

import importlib
import runpy
import sys
from collections.abc import Sequence
from types import ModuleType

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_declared = []  # torch forgets a declaration when its Library object is dropped


def load_torchvision() -> ModuleType:
    """`import torchvision`, with the repair only where the plain import fails for the reason above.

    Raises:
        ImportError: torchvision is not installed.
        RuntimeError: the import fails for another reason.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::" not in str(error) or _declared:
            raise
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    _declare_operators()
    return importlib.import_module("torchvision")


def _declare_operators() -> None:
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in _SCHEMAS:
        library.define(schema)
    _declared.append(library)


def run_program(arguments: Sequence[str]) -> None:
    """Run a Python program as `python FILE …` would, in which `import torchvision` works.

    Args:
        arguments: the program's file, then its own arguments.
    """
    load_torchvision()
    sys.argv[:] = arguments
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    run_program(sys.argv[1:])
