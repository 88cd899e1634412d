"""The digits are split and normalised; what cannot be found or fetched is replaced, and that is said."""

import gzip
import hashlib
import http.server
import os
import pickle
import struct
import sys
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from course_utils import data, download
from course_utils.errors import CourseError


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COURSE_OFFLINE", "1")


def test_digits_are_all_there_and_none_twice() -> None:
    train_x, train_y, test_x, test_y = data.digits_arrays()
    assert train_x.shape == (1437, 64) and test_x.shape == (360, 64)
    together = np.concatenate([train_x, test_x])
    scale = 16 / (together.max() - together.min())
    pixels = np.rint((together - together.min()) * scale).astype(int)
    original = load_digits().data.astype(int)
    assert sorted(map(tuple, pixels)) == sorted(map(tuple, original))
    assert np.bincount(train_y).min() >= 138 and np.bincount(test_y).min() >= 34


@pytest.mark.parametrize("seed", range(5))
def test_digits_are_split_as_scikit_learn_splits_them(seed) -> None:
    x, y = load_digits(return_X_y=True)
    train_x, test_x, *labels = train_test_split(x, y, test_size=data.TEST_SHARE, stratify=y, random_state=seed)
    due = [(part - train_x.mean()) / train_x.std() for part in (train_x, test_x)]
    found = data.digits_arrays(seed)
    assert all(np.array_equal(one, other) for one, other in zip(found[::2], due, strict=True))
    assert all(np.array_equal(one, other) for one, other in zip(found[1::2], labels, strict=True))


def test_without_scikit_learn_there_are_no_digits(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ModuleNotFoundError, match="No module named 'sklearn'"):
        data.digits_arrays()


def test_digits_are_normalised_with_the_training_images_alone() -> None:
    train_x, _, test_x, _ = data.digits_arrays()
    assert abs(train_x.mean()) < 1e-12 and abs(train_x.std() - 1) < 1e-12
    assert abs(test_x.mean()) > 1e-6


@pytest.mark.parametrize("dtype", ["float64", "float32", torch.float16])
def test_digits_come_in_the_dtype_asked_for(dtype) -> None:
    split = data.digits(dtype)
    assert split.train_x.dtype == split.test_x.dtype == (getattr(torch, dtype) if isinstance(dtype, str) else dtype)
    assert split.train_y.dtype == split.test_y.dtype == torch.int64


def test_the_seed_decides_the_split() -> None:
    assert torch.equal(data.digits(seed=3).test_y, data.digits(seed=3).test_y)
    assert not torch.equal(data.digits(seed=3).test_y, data.digits(seed=4).test_y)


@pytest.mark.parametrize(("load", "name"), [(data.cifar10, "CIFAR10"), (data.mnist, "MNIST")])
def test_the_digits_stand_in_and_say_so(load, name, capsys) -> None:
    split = load(limit=100)
    assert capsys.readouterr().out.startswith(f"{name} is not here, so the handwritten digits stand in")
    assert split.train_x.shape == (100, *data.SHAPES[name]) and split.test_x.shape == (25, *data.SHAPES[name])
    assert split.train_x.dtype == torch.float32 and split.train_x.is_contiguous()
    assert abs(split.train_x.mean()) < 1e-5 and len(load().train_x) == 1437


def test_a_folder_one_may_not_write_to_is_no_error(monkeypatch, tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "file" / "data"))
    data.mnist(limit=10)
    assert "stand in" in capsys.readouterr().out


def test_mnist_is_read_where_it_lies(tmp_path, capsys) -> None:
    raw = tmp_path / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    images = np.random.default_rng(0).integers(0, 256, (12, 28, 28), dtype=np.uint8)
    for part, count in (("train", 12), ("t10k", 6)):
        header = struct.pack(">IIII", 2051, count, 28, 28)
        (raw / f"{part}-images-idx3-ubyte").write_bytes(header + images[:count].tobytes())
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + bytes(range(count)))
    split = data.mnist()
    assert capsys.readouterr().out == ""
    expected = images[:, None] / 255
    np.testing.assert_allclose(split.train_x, (expected - expected.mean()) / expected.std(ddof=1), atol=1e-5)
    assert split.test_y.tolist() == [0, 1, 2, 3, 4, 5]
    assert len(data.mnist(limit=4).test_x) == 2


def test_cifar10_is_read_where_it_lies(tmp_path, monkeypatch) -> None:
    from course_utils.torchvision_repair import load_torchvision

    folder = tmp_path / "data" / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3072), dtype=np.uint8)
    cifar = load_torchvision().datasets.CIFAR10
    for name, content in {
        "data_batch_1": {"data": pixels, "labels": [3, 9]},
        "test_batch": {"data": pixels, "labels": [3, 9]},
        "batches.meta": {"label_names": list("abcdefghij")},
    }.items():
        (folder / name).write_bytes(pickle.dumps(content))
    sums = {file.name: hashlib.md5(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    monkeypatch.setattr(cifar, "train_list", [["data_batch_1", sums["data_batch_1"]]])
    monkeypatch.setattr(cifar, "test_list", [["test_batch", sums["test_batch"]]])
    monkeypatch.setattr(cifar, "meta", {**cifar.meta, "md5": sums["batches.meta"]})
    split = data.cifar10()
    red = pixels[:, :1024].reshape(2, 32, 32) / 255
    np.testing.assert_allclose(split.train_x[:, 0], (red - red.mean()) / red.std(ddof=1), atol=1e-5)
    assert split.train_y.tolist() == [3, 9]


@pytest.fixture
def site(tmp_path, monkeypatch) -> Iterator[tuple[str, Path, list[str]]]:
    """A web site on this machine: its address, its folder, and the paths it was asked for."""
    asked: list[str] = []
    folder = tmp_path / "site"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    monkeypatch.delenv("COURSE_OFFLINE")
    monkeypatch.setattr(download, "_unreachable", set())
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", folder, asked
        server.shutdown()


def test_a_file_is_fetched_once_by_several_that_ask_at_once(site, tmp_path) -> None:
    address, folder, asked = site
    (folder / "x").write_bytes(b"numbers" * 1000)
    target, md5 = tmp_path / "data" / "x", hashlib.md5(b"numbers" * 1000).hexdigest()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: download.fetch(f"{address}/x", target, md5), range(4)))
    assert target.read_bytes() == b"numbers" * 1000
    assert asked == ["/x"]
    assert sorted(file.name for file in target.parent.iterdir()) == [".lock", "x"]


def test_a_file_that_is_not_the_right_one_is_rejected(site, tmp_path) -> None:
    address, folder, _ = site
    (folder / "x").write_bytes(b"something else")
    with pytest.raises(CourseError, match="is not the file it should be"):
        download.fetch(f"{address}/x", tmp_path / "data" / "x", "0" * 32)
    assert [file.name for file in (tmp_path / "data").iterdir()] == [".lock"]


def test_a_site_that_does_not_answer_is_said_plainly(site, tmp_path) -> None:
    address, _, _ = site
    with pytest.raises(CourseError, match="answers 404"):
        download.fetch(f"{address}/nothing", tmp_path / "data" / "x", "0" * 32)
    with pytest.raises(CourseError, match="did not reach"):
        download.fetch("http://127.0.0.1:9/x", tmp_path / "data" / "x", "0" * 32)


def test_mnist_is_fetched_and_unpacked(site, monkeypatch, capsys) -> None:
    from course_utils.torchvision_repair import load_torchvision

    address, folder, _ = site
    sums = []
    for part, count in (("train", 8), ("t10k", 4)):
        for kind, content in (
            ("images-idx3", struct.pack(">IIII", 2051, count, 28, 28) + os.urandom(count * 784)),
            ("labels-idx1", struct.pack(">II", 2049, count) + bytes(count)),
        ):
            file = folder / f"{part}-{kind}-ubyte.gz"
            file.write_bytes(gzip.compress(content))
            sums.append((file.name, hashlib.md5(file.read_bytes()).hexdigest()))
    mnist = load_torchvision().datasets.MNIST
    monkeypatch.setattr(mnist, "resources", sums)
    monkeypatch.setattr(mnist, "mirrors", [f"{address}/"])
    assert len(data.mnist().train_x) == 8
    assert "stand in" not in capsys.readouterr().out


def test_cifar10_is_fetched_and_unpacked(site, monkeypatch, tmp_path, capsys) -> None:
    from course_utils.torchvision_repair import load_torchvision

    address, folder, _ = site
    cifar, inside = load_torchvision().datasets.CIFAR10, tmp_path / "cifar-10-batches-py"
    inside.mkdir()
    batch = {"data": np.zeros((3, 3072), dtype=np.uint8) + np.arange(3, dtype=np.uint8)[:, None], "labels": [0, 1, 2]}
    (inside / "batch").write_bytes(pickle.dumps(batch))
    (inside / "batches.meta").write_bytes(pickle.dumps({"label_names": list("abcdefghij")}))
    sums = {file.name: hashlib.md5(file.read_bytes()).hexdigest() for file in inside.iterdir()}
    with tarfile.open(folder / cifar.filename, "w:gz") as archive:
        archive.add(inside, arcname=inside.name)
    monkeypatch.setattr(cifar, "url", f"{address}/{cifar.filename}")
    monkeypatch.setattr(cifar, "tgz_md5", hashlib.md5((folder / cifar.filename).read_bytes()).hexdigest())
    monkeypatch.setattr(cifar, "train_list", [["batch", sums["batch"]]])
    monkeypatch.setattr(cifar, "test_list", [["batch", sums["batch"]]])
    monkeypatch.setattr(cifar, "meta", {**cifar.meta, "md5": sums["batches.meta"]})
    assert data.cifar10().test_y.tolist() == [0, 1, 2]
    assert "stand in" not in capsys.readouterr().out
