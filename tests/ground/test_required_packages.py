"""What pyproject.toml requires and is missing or of a version that does not fit, on machines made of files."""

import tomllib
from pathlib import Path

import pytest
import torch.distributed as dist
from packaging.requirements import Requirement

from course_utils import diagnosis, required_packages
from course_utils.errors import CourseError
from course_utils.lessons.profiling.dumps import flight_recorder
from course_utils.probes import Health
from course_utils.ranks.engine.reply import describe_exception
from course_utils.required_packages import UnfitPackage, outdated_source, unfit_package, unfit_packages
from course_utils.syllabus import ROOT

[NEEDED] = [
    str(requirement.specifier)
    for line in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    if (requirement := Requirement(line)).name == "torch"
]
OLD = UnfitPackage("torch", "2.11.0+cu130", NEEDED)


def installed(folder: Path, name: str, version: str) -> None:
    """As pip notes down what it has installed."""
    metadata = folder / f"{name}-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.fixture
def old_torch(tmp_path, monkeypatch) -> None:
    """An environment whose torch is older than the course needs."""
    installed(tmp_path, "torch", OLD.version)
    monkeypatch.syspath_prepend(tmp_path)


def test_everything_fits_in_this_environment() -> None:
    assert unfit_packages() == []


def test_an_old_version_does_not_fit(old_torch) -> None:
    assert unfit_packages() == [OLD] and unfit_package("torch") == OLD and unfit_package("numpy") is None
    assert str(OLD) == f"torch 2.11.0+cu130 is installed, and the course needs torch{NEEDED}"


@pytest.mark.parametrize("version", ["99.1", "99.0.0a0+site.1", "99.1.dev20261128"])
def test_newer_versions_and_builds_of_a_site_fit(tmp_path, monkeypatch, version) -> None:
    installed(tmp_path, "torch", version)
    monkeypatch.syspath_prepend(tmp_path)
    assert unfit_package("torch") is None


@pytest.mark.parametrize("version", ["2.13.0a0+site.1", "2.13.0+cpu"])
def test_a_build_before_a_release_counts_as_the_release(tmp_path, version) -> None:
    installed(tmp_path, "torch", version)
    assert required_packages._unfit(Requirement("torch>=2.13"), [str(tmp_path)]) is None
    assert required_packages._unfit(Requirement("torch>=2.14"), [str(tmp_path)]).version == version


def test_a_version_that_cannot_be_read_does_not_fit(tmp_path) -> None:
    installed(tmp_path, "torch", "newest")
    assert required_packages._unfit(Requirement("torch>=2.13"), [str(tmp_path)]).version == "newest"


def test_an_environment_of_the_ranks_is_asked_for_its_own_packages(tmp_path) -> None:
    packages = tmp_path / "lib" / "python3.12" / "site-packages"
    installed(packages, "torch", "2.11.0")
    found = {package.name: package.version for package in unfit_packages(str(tmp_path / "bin" / "python"))}
    assert found["torch"] == "2.11.0" and found["numpy"] == ""


def test_without_a_checkout_nothing_is_required(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(required_packages, "ROOT", tmp_path)
    assert unfit_packages() == [] and unfit_package("torch") is None


def test_the_doctor_says_which_version_is_needed_and_how_to_get_it(old_torch, monkeypatch) -> None:
    monkeypatch.setattr(diagnosis, "may_write", lambda: True)
    found = diagnosis._packages()
    assert found.health is Health.FAILED and found.missing == (f"torch{NEEDED}",) and found.command == "make setup"
    assert found.values["unfit_versions"] == {"torch": {"version": OLD.version, "needed": NEEDED}}
    assert str(found).startswith(f"✗ packages    {OLD}. `make setup` installs")


def test_the_doctor_names_what_is_missing_and_what_is_old(old_torch, monkeypatch) -> None:
    find = diagnosis.importlib.util.find_spec
    monkeypatch.setattr(diagnosis.importlib.util, "find_spec", lambda name: None if name == "numpy" else find(name))
    found = diagnosis._packages()
    assert found.missing == ("numpy", f"torch{NEEDED}") and found.found == f"missing: numpy; {OLD}"


def error_of(code: str) -> Exception:
    """What this code raises."""
    with pytest.raises(Exception) as caught:
        exec(code, {"dist": dist})
    return caught.value


NO_NAME = ("dist.newer_call", "from torch.distributed import newer_call", "import torch.newer_module")


@pytest.mark.parametrize("code", NO_NAME)
def test_an_error_for_a_name_that_old_torch_lacks_names_its_version(old_torch, code) -> None:
    error = error_of(code)
    assert outdated_source(error) == OLD
    assert describe_exception(error).message.endswith(f" ({OLD})")


@pytest.mark.parametrize("code", [*NO_NAME, "import math; math.newer_call", "[].newer_call", "import newer_module"])
def test_where_versions_fit_an_error_is_told_as_it_is(code) -> None:
    error = error_of(code)
    assert outdated_source(error) is None and describe_exception(error).message == str(error)


def test_other_errors_do_not_blame_old_torch(old_torch) -> None:
    assert outdated_source(error_of("import math; math.newer_call")) is None
    assert outdated_source(error_of("[].newer_call")) is None and outdated_source(ValueError("torch")) is None


def test_what_old_torchs_flight_recorder_cannot_read_is_blamed_on_its_version(old_torch, tmp_path) -> None:
    with pytest.raises(CourseError, match=r"^torchfrtrace failed: torch 2\.11\.0\+cu130 is .* `course doctor`"):
        flight_recorder.fr_trace(tmp_path / "no dumps")
