"""Files and folders of logs: which are read, whose they are, and what is said where there is nothing to read."""

import bz2
import gzip
import json
import lzma
import os
import random
from pathlib import Path

import pytest

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.failures.reading.log_files import WhyLeftOut, read_logs
from course_utils.lessons.gpu_nodes.failures.reading.logged_launches import launches_of

ERROR = "Traceback (most recent call last):\nKeyError: 'a'\n"


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def ranks_by_file(folder: Path) -> dict[str, int | None]:
    """The rank of the last line of each file."""
    return {os.path.relpath(line.file, folder): line.rank for line in read_logs([folder]).lines}


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("Größe\n".encode(), ["Größe"]),
        ("Größe\n".encode("latin-1"), ["Größe"]),
        ("100%|██| Größe".encode()[:6] + "\n100%|█ ü".encode(), None),
        ("Größe\r\nb\n".encode("utf-16"), ["Größe", "b"]),
        ("Größe\n".encode("utf-8-sig"), ["Größe"]),
        (b"a\n" + b"\0" * 5000 + b"b\n", ["a", "b"]),
        (b"\0" * 100_000 + b"after a cut\n", ["after a cut"]),
        (gzip.compress(b"a\nb\n"), ["a", "b"]),
        (bz2.compress(b"a\nb\n"), ["a", "b"]),
        (lzma.compress(b"a\nb\n"), ["a", "b"]),
    ],
    ids=["UTF-8", "Latin-1", "both", "UTF-16", "with a mark", "zeros inside", "zeros before", "gzip", "bzip2", "xz"],
)
def test_encodings(content: bytes, texts: list[str] | None, tmp_path: Path) -> None:
    lines = read_logs([write(tmp_path, {"train.out": content}) / "train.out"]).lines
    assert texts is None or [line.text for line in lines] == texts


def test_a_damaged_compressed_file_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    rng = random.Random(1)
    text = "".join(f"{rng.random()}\n" for _ in range(10_000)).encode()
    lines = read_logs([write(tmp_path, {"train.out.gz": gzip.compress(text)[:-4000]}) / "train.out.gz"]).lines
    assert 5_000 < len(lines) < 10_000 and lines[77].number == 78


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda file: None, "cannot be read: No such file"),
        (lambda file: file.write_bytes(b""), "is empty"),
        (lambda file: file.write_bytes(b" \n\0\0"), "is empty"),
        (lambda file: file.write_bytes(gzip.compress(b"")), "is empty"),
        (lambda file: file.write_bytes(b"\x1f\x8b nothing"), "is empty"),
        (lambda file: file.write_bytes(b"\x7fELF" + bytes(range(256))), "is not text"),
        (lambda file: file.write_bytes(random.Random(1).randbytes(5000)), "is not text"),
        (lambda file: os.mkfifo(file), "is not a file that holds text"),
        (lambda file: file.symlink_to("/dev/null"), "is not a file that holds text"),
        (lambda file: file.symlink_to(file), "cannot be read"),
        (lambda file: file.mkdir(), "There is no log in"),
    ],
)
def test_one_line_says_why_a_log_cannot_be_read(make, says: str, tmp_path: Path) -> None:
    make(tmp_path / "train.out")
    with pytest.raises(CourseError, match=says) as error:
        read_logs([tmp_path / "train.out"])
    assert "train.out" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_one_line_says_that_a_log_is_forbidden(tmp_path: Path) -> None:
    file = write(tmp_path, {"train.out": ERROR}) / "train.out"
    file.chmod(0)
    with pytest.raises(CourseError, match="Permission denied"):
        read_logs([file])


def test_of_a_folder_only_logs_are_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "train-12.out": ERROR,
            "train.py": "raise KeyError",
            "notes.ipynb": "{}",
            "core.n1.77": b"\x7fELF" + bytes(200),
            "model.pt": b"PK\x03\x04",
            "empty.err": "",
            "wandb/run/output.log": ERROR,
            ".git/log": ERROR,
            "old/train-11.out.gz": gzip.compress(ERROR.encode()),
        },
    )
    logs = read_logs([tmp_path])
    assert [os.path.relpath(file, tmp_path) for file in logs.files] == ["old/train-11.out.gz", "train-12.out"]
    assert {os.path.basename(left.file): left.why for left in logs.left_out} == {
        "train.py": WhyLeftOut.NO_LOG,
        "notes.ipynb": WhyLeftOut.NO_LOG,
        "core.n1.77": WhyLeftOut.BINARY,
        "model.pt": WhyLeftOut.NO_LOG,
        "empty.err": WhyLeftOut.EMPTY,
    }


def test_a_file_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, {"train.out": ERROR})
    (tmp_path / "latest.out").symlink_to("train.out")
    assert len(read_logs([tmp_path, tmp_path / "train.out"]).files) == 1


def test_the_folders_of_torchrun_name_ranks(tmp_path: Path) -> None:
    run = "logs/none_ab12cd34"
    error = {"message": {"message": "KeyError: 'a'", "extraInfo": {"py_callstack": ERROR, "timestamp": "1795309951"}}}
    write(
        tmp_path,
        {
            f"{run}/attempt_0/0/stderr.log": "",
            f"{run}/attempt_0/0/stdout.log": "step 1\n",
            f"{run}/attempt_0/1/stderr.log": "[rank1]: Traceback (most recent call last):\n[rank1]: KeyError: 'a'\n",
            f"{run}/attempt_0/1/error.json": json.dumps(error),
            f"{run}/attempt_1/1/stderr.log": ERROR,
        },
    )
    assert ranks_by_file(tmp_path) == {
        f"{run}/attempt_0/0/stdout.log": 0,
        f"{run}/attempt_0/1/error.json": 1,
        f"{run}/attempt_0/1/stderr.log": 1,
        f"{run}/attempt_1/1/stderr.log": 1,
    }
    lines = read_logs([tmp_path]).lines
    assert [(line.text, line.number, line.time) for line in lines if line.file.endswith("error.json")] == [
        ("Traceback (most recent call last):", 1, 1795309951.0),
        ("KeyError: 'a'", 1, 1795309951.0),
    ]
    (launch,) = launches_of(lines)
    assert launch.attempts == 2 and launch.least_size == 2


def test_the_folders_of_torchrun_on_the_second_node(tmp_path: Path) -> None:
    files = {f"job7_ab12cd3{node}/attempt_0/{local}/stderr.log": "hello\n" for node in range(2) for local in range(2)}
    files["job7_ab12cd31/attempt_0/1/stderr.log"] = "[rank3]: KeyError: 'a'\n"
    files["job7_ab12cd30/attempt_0/1/stderr.log"] = "[rank1]: KeyError: 'a'\n"
    assert sorted(ranks_by_file(write(tmp_path, files)).values()) == [0, 1, 2, 3]
    (launch,) = launches_of(read_logs([tmp_path]).lines)
    assert len(launch.files) == 4


@pytest.mark.parametrize(
    "names",
    [
        ["0", "1", "2"],
        ["0.out", "1.out", "2.out"],
        ["job_0.out", "job_1.out", "job_2.out"],
        ["slurm-77-0.out", "slurm-77-1.out", "slurm-77-2.out"],
        ["rank0.log", "rank1.log", "rank2.log"],
        ["train_rank_0000.log", "train_rank_0001.log", "train_rank_0002.log"],
        ["1/rank.0/stderr", "1/rank.1/stderr", "1/rank.2/stderr"],
    ],
)
def test_names_that_count_are_ranks(names: list[str], tmp_path: Path) -> None:
    write(tmp_path, {name: f"hello of {'abc'[rank]}\n{ERROR}" for rank, name in enumerate(names)})
    assert ranks_by_file(tmp_path) == {name: rank for rank, name in enumerate(names)}
    assert [len(launch.files) for launch in launches_of(read_logs([tmp_path]).lines)] == [3]


def test_names_that_count_are_no_ranks_if_the_marks_say_otherwise(tmp_path: Path) -> None:
    nodes = {f"job_{node}.out": f"hello\n[rank{2 * node}]: x\n[rank{2 * node + 1}]: x\nhello\n" for node in range(2)}
    assert ranks_by_file(write(tmp_path, nodes)) == {"job_0.out": None, "job_1.out": None}
    assert len(launches_of(read_logs([tmp_path]).lines)) == 1


def test_an_array_of_jobs_is_several_jobs(tmp_path: Path) -> None:
    write(tmp_path, {f"slurm-1234_{task}.out": f"2026-11-22 0{task}:00:00 hello\n{ERROR}" for task in range(3)})
    assert set(ranks_by_file(tmp_path).values()) == {None}
    assert len(launches_of(read_logs([tmp_path]).lines)) == 3


def test_output_and_errors_are_of_one_launch_and_jobs_are_not(tmp_path: Path) -> None:
    write(tmp_path, {f"train-{job}.{kind}": ERROR for job in (999, 1000) for kind in ("out", "err")})
    launches = launches_of(read_logs([tmp_path]).lines)
    assert [[os.path.basename(file) for file in launch.files] for launch in launches] == [
        ["train-999.err", "train-999.out"],
        ["train-1000.err", "train-1000.out"],
    ]


def test_files_of_nodes_are_of_one_launch_if_their_ranks_differ(tmp_path: Path) -> None:
    write(tmp_path, {"alpha.log": "2026-11-22 01:00:00 [rank0] a\n", "beta.log": "2026-11-22 01:00:09 [rank1] a\n"})
    assert len(launches_of(read_logs([tmp_path]).lines)) == 1
    write(tmp_path, {"beta.log": "2026-11-23 01:00:09 [rank1] a\n"})
    assert len(launches_of(read_logs([tmp_path]).lines)) == 2


def test_a_clock_without_a_year_takes_it_from_the_other_files(tmp_path: Path) -> None:
    write(tmp_path, {"job_0.out": "2024-11-22 01:00:00 a\n", "job_1.out": "E1122 01:00:05.0 7 x.py:1] b\n"})
    first, second = read_logs([tmp_path]).lines
    assert second.time == (first.time or 0) + 5


def test_a_year_is_that_of_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, {"train.err": "E1231 23:59:58.0 7 x.py:1] a\nE0101 00:00:05.0 7 x.py:1] b\n"}) / "train.err"
    os.utime(file, (1704067300, 1704067300))  # 2024-01-01 00:01:40
    assert [line.time for line in read_logs([file]).lines] == [1704067198.0, 1704067205.0]


def test_nodes_in_different_time_zones_have_one_clock(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"rank0.log": "2026-11-22 01:00:00 a\n2026-11-22 01:10:00 b\n", "rank1.log": "2026-11-22 03:00:09 a\n"},
    )
    (launch,) = launches_of(read_logs([tmp_path]).lines)
    first, _, second = launch.lines
    assert second.time == (first.time or 0) + 9
    write(tmp_path, {"rank1.log": "2026-11-22 01:40:09 a collective was not done in 30 minutes\n"})
    (launch,) = launches_of(read_logs([tmp_path]).lines)
    assert launch.lines[2].time == (launch.lines[0].time or 0) + 2409


def test_two_jobs_on_the_same_nodes_are_two_launches(tmp_path: Path) -> None:
    write(tmp_path, {f"{job}-n{node}.log": f"[rank{node}]: x\n" for job in (1001, 1002) for node in (1, 2)})
    launches = launches_of(read_logs([tmp_path]).lines)
    assert [[os.path.basename(file) for file in launch.files] for launch in launches] == [
        ["1001-n1.log", "1001-n2.log"],
        ["1002-n1.log", "1002-n2.log"],
    ]


def test_a_thousand_files_of_ranks(tmp_path: Path) -> None:
    write(tmp_path, {f"run_{rank}.{kind}": f"hello\n{ERROR}" for rank in range(500) for kind in ("out", "err")})
    logs = read_logs([tmp_path])
    (launch,) = launches_of(logs.lines)
    assert len(launch.files) == 1000 and launch.least_size == 500


def test_a_rank_whose_file_is_empty_is_silent(tmp_path: Path) -> None:
    write(tmp_path, {"rank_0.log": "step 1\n", "rank_1.log": "step 1\n", "rank_2.log": ""})
    for paths in ([tmp_path], sorted(tmp_path.iterdir())):
        logs = read_logs(paths)
        (launch,) = launches_of(logs.lines, logs.empty)
        assert [of.rank for of in launch.silent] == [2] and launch.least_size == 3 and launch.world_size == 0
