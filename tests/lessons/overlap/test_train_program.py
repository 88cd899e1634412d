"""`train.py`, which the reader takes home: it needs torch and torchvision, and trains as one process does."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from course_utils import torchvision_repair
from course_utils.errors import CourseError
from course_utils.lessons.overlap.image_folders import digits_as_pictures
from course_utils.lessons.overlap.torchrun import TRAIN_PROGRAM, run_torchrun, torchvision_loads
from course_utils.torchvision_repair import load_torchvision

load_torchvision()
from course_utils.lessons.overlap.training_program.vgg_on_cifar10 import vgg11  # noqa: E402 - it imports torchvision


def test_it_imports_torch_and_torchvision_and_nothing_else() -> None:
    nodes = list(ast.walk(ast.parse(TRAIN_PROGRAM.read_text(encoding="utf-8"))))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    packages = {name.partition(".")[0] for name in imported} - sys.stdlib_module_names
    assert packages == {"torch", "torchvision"}


def test_its_network_has_eight_convolutions_and_ends_with_the_classes() -> None:
    model = vgg11(0.125, 7)
    kinds = [type(layer).__name__ for layer in model]
    assert kinds.count("Conv2d") == 8 and kinds.count("MaxPool2d") == 5 and "BatchNorm2d" not in kinds
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 7)
    assert model[0].out_channels == 8 and vgg11(1.0, 7)[0].out_channels == 64


@pytest.mark.long
def test_it_runs_away_from_the_course_and_two_processes_train_as_one_does(tmp_path) -> None:
    shutil.copy(TRAIN_PROGRAM, tmp_path / "train.py")
    digits_as_pictures(tmp_path / "digits", train=150, test=33)  # 33 images, which two ranks cannot share evenly
    start = ["train.py"]
    if not torchvision_loads(sys.executable):  # the repair needs nothing of the course either
        shutil.copy(torchvision_repair.__file__, tmp_path / "repair.py")
        start = ["repair.py", "train.py"]
    away = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    away |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    history = []
    for processes in (2, 1):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        options = ["--data=digits", "--width=0.125", "--epochs=2", "--double", f"--save={processes}.pt"]
        ran = subprocess.run(
            [*command, *start, *options], cwd=tmp_path, env=away, capture_output=True, text=True, timeout=300
        )
        assert ran.returncode == 0, ran.stderr[-3000:]
        assert f"150 images, processes: {processes}" in ran.stdout
        assert len(re.findall(r"^epoch \d: loss", ran.stdout, flags=re.MULTILINE)) == 2
        saved = torch.load(tmp_path / f"{processes}.pt")
        vgg11(0.125, 10).load_state_dict(saved["model"])
        history.append(saved["history"])
    assert np.allclose(*history, rtol=0, atol=1e-9)
    images = np.array(history[0])[:, 1] * 33
    assert np.allclose(images, images.round()), "an image is counted twice, or not at all"


def test_digits_as_pictures_are_the_digits(tmp_path) -> None:
    from PIL import Image

    from course_utils.data import digits_arrays

    digits_as_pictures(tmp_path, train=20, test=5)
    x, y, *_ = digits_arrays()
    files = {part: sorted(tmp_path.glob(f"{part}/*/*.png"), key=lambda file: file.name) for part in ("train", "test")}
    assert len(files["train"]) == 20 and len(files["test"]) == 5
    for number, file in enumerate(files["train"]):
        assert int(file.parent.name) == y[number]
        pixels = np.asarray(Image.open(file), float).ravel()
        assert np.corrcoef(pixels, x[number])[0, 1] > 0.999


def program(folder: Path, text: str) -> str:
    """A torchrun that starts this program."""
    (folder / "program.py").write_text(text)
    return "torchrun --standalone --nproc-per-node 1 program.py"


@pytest.mark.long
def test_lines_are_printed_and_a_failure_is_an_error(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("course_utils.lessons.overlap.torchrun.torchvision_loads", lambda python: True)
    run_torchrun(program(tmp_path, "import os; print('rank', os.environ['RANK'])"), tmp_path)
    assert capsys.readouterr().out == "rank 0\n"
    with pytest.raises(CourseError, match="exit code 1"):
        run_torchrun(program(tmp_path, "raise ValueError('wrong')"), tmp_path)
    assert "ValueError: wrong" in capsys.readouterr().out
    sleeper = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    with pytest.raises(CourseError, match="not ended after 15 s"):
        run_torchrun(program(tmp_path, sleeper), tmp_path, seconds=15)
    if (tmp_path / "pid").exists():  # on a busy machine 15 s may be too short
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)
    with pytest.raises(CourseError, match="begin with `torchrun`"):
        run_torchrun("rm -r .", tmp_path)
