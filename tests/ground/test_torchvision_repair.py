"""torchvision loads beside every build of torch, and the repair does nothing where it loads by itself."""

import subprocess
import sys

import pytest

from course_utils import torchvision_repair

LOADS_BY_ITSELF = "import torchvision"
REPAIRED = """
from course_utils import torchvision_repair
torchvision = torchvision_repair.load_torchvision()
assert torchvision_repair.load_torchvision() is torchvision
import torchvision.datasets, torchvision.transforms.v2, torchvision.models
model = torchvision.models.resnet18()
print(len(torchvision_repair._declared), sum(parameter.numel() for parameter in model.parameters()))
"""


def python(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


@pytest.mark.long
def test_torchvision_loads_and_is_repaired_only_where_it_must_be() -> None:
    declared, parameters = python(REPAIRED).stdout.split()
    assert int(declared) == (python(LOADS_BY_ITSELF).returncode != 0)
    assert int(parameters) == 11_689_512


def test_an_import_that_works_is_left_alone(monkeypatch) -> None:
    works = object()
    monkeypatch.setattr(torchvision_repair.importlib, "import_module", lambda name: works)
    monkeypatch.setattr(torchvision_repair, "_declare_operators", lambda: pytest.fail("nothing is broken"))
    assert torchvision_repair.load_torchvision() is works


@pytest.mark.parametrize("error", [RuntimeError("CUDA version mismatch"), ImportError("No module named 'torchvision'")])
def test_another_failure_is_shown_as_it_is(monkeypatch, error) -> None:
    def fails(name: str) -> None:
        raise error

    monkeypatch.setattr(torchvision_repair.importlib, "import_module", fails)
    monkeypatch.setattr(torchvision_repair, "_declare_operators", lambda: pytest.fail("this is not what it repairs"))
    with pytest.raises(type(error), match=str(error)):
        torchvision_repair.load_torchvision()
