"""Which rank takes which GPU, on every kind of machine: decided from seats, as their ranks would tell them."""

import warnings
from types import SimpleNamespace

import pytest
import torch

from course_utils import gpu_seats
from course_utils.errors import CourseError
from course_utils.gpu_seats import Gpu, Seat, assign_gpus, own_seat

A, B, C, D = (Gpu(letter, "NVIDIA H100 80GB HBM3") for letter in "abcd")
SLICE = Gpu("s", "NVIDIA A100-SXM4-40GB MIG 1g.5gb")
OTHER_SLICE = Gpu("t", "NVIDIA A100-SXM4-40GB MIG 1g.5gb")


@pytest.mark.parametrize(
    ("seats", "backend", "numbers", "over"),
    [
        ([Seat("n1")] * 2, "gloo", (), "gloo, because there is no GPU"),
        ([Seat("n1", (A,))], "nccl", (0,), "NCCL, NVIDIA H100 80GB HBM3"),
        ([Seat("n1", (A, B, C, D))] * 4, "nccl", (0, 1, 2, 3), "NCCL, NVIDIA H100 80GB HBM3"),
        ([Seat("n1", (A, B))] * 2 + [Seat("n2", (C, D))] * 2, "nccl", (0, 1, 0, 1), "NCCL, NVIDIA H100 80GB HBM3"),
        ([Seat("n1", (A, B)), Seat("n2", (C, D))] * 2, "nccl", (0, 0, 1, 1), "NCCL, NVIDIA H100 80GB HBM3"),
        ([Seat("n1", (A,)), Seat("n1", (B,))], "nccl", (0, 0), "NCCL, NVIDIA H100 80GB HBM3"),
        (
            [Seat("n1", (A,))] * 2,
            "gloo",
            (),
            "gloo, because n1 has 1 GPU for 2 ranks, and NCCL wants one for each",
        ),
        (
            [Seat("n1", (A, B, C))] * 4,
            "gloo",
            (),
            "gloo, because n1 has 3 GPUs for 4 ranks, and NCCL wants one for each",
        ),
        (
            [Seat("n1", (A, B)), Seat("n1", (B, A))],
            "gloo",
            (),
            "gloo, because ranks see different GPUs, and two would share one; NCCL wants one for each",
        ),
        (
            [Seat("n1", (A,)), Seat("n2")],
            "gloo",
            (),
            "gloo, because rank 1 on n2 sees no GPU and 1 other rank does. In a job, --gpus-per-node asks for as many "
            "on each node as it has ranks",
        ),
        (
            [Seat("n1", (SLICE,)), Seat("n1", (OTHER_SLICE,))],
            "gloo",
            (),
            "gloo, because NCCL does not connect parts of a GPU (MIG: NVIDIA A100-SXM4-40GB MIG 1g.5gb)",
        ),
        ([Seat("n1", (SLICE,))], "nccl", (0,), "NCCL, NVIDIA A100-SXM4-40GB MIG 1g.5gb"),
        ([Seat("n1", trouble="the driver is old")], "gloo", (), "gloo, because the driver is old"),
    ],
    ids=[
        "no GPU",
        "one rank",
        "one node",
        "two nodes",
        "ranks by turns on nodes",
        "each sees its own",
        "one GPU for two",
        "three GPUs for four",
        "different orders",
        "one node without",
        "MIG",
        "MIG, one rank",
        "trouble",
    ],
)
def test_every_rank_gets_a_gpu_of_its_own_or_none_does(seats, backend, numbers, over) -> None:
    placement = assign_gpus(seats)
    assert (placement.backend, placement.numbers, placement.over) == (backend, numbers, over)
    if backend == "gloo":
        with pytest.raises(CourseError, match=r'^backend="nccl" is not possible here: '):
            placement.require_nccl()
    else:
        placement.require_nccl()


def test_what_a_launcher_says_of_local_ranks_is_not_asked(monkeypatch) -> None:
    """Inside a job of Slurm's every rank of a notebook inherits the job's own SLURM_LOCALID."""
    monkeypatch.setenv("SLURM_LOCALID", "0")
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert assign_gpus([Seat("n1", (A, B))] * 2).numbers == (0, 1)


@pytest.fixture
def four_gpus_shown(monkeypatch):
    monkeypatch.setattr(gpu_seats, "gpus", lambda: ["NVIDIA H100"] * 4)
    monkeypatch.setenv("SLURMD_NODENAME", "gpu01")


def test_a_build_of_torch_without_cuda_is_told_on_a_node_with_gpus(monkeypatch, four_gpus_shown) -> None:
    monkeypatch.setattr(torch, "__version__", "2.13.0+cpu")
    monkeypatch.setattr(torch.version, "cuda", None)
    assert own_seat() == Seat(
        "gpu01", trouble="torch 2.13.0+cpu is a build without CUDA, so it cannot use the 4 GPUs here"
    )


def test_a_driver_too_old_is_told_in_torchs_words(monkeypatch, four_gpus_shown) -> None:
    def is_available() -> bool:
        warnings.warn(
            "CUDA initialization: The NVIDIA driver on your system is too old (found version 12020). Please update …",
            stacklevel=1,
        )
        return False

    monkeypatch.setattr(torch, "__version__", "2.13.0+cu130")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", is_available)
    assert own_seat().trouble == (
        "torch 2.13.0+cu130, made for CUDA 13.0, can use none of the 4 GPUs here: CUDA initialization: The NVIDIA "
        "driver on your system is too old (found version 12020)"
    )


def test_a_process_tells_every_gpu_that_torch_shows_it(monkeypatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "gpu01")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    facts = [SimpleNamespace(uuid=gpu.id, name=gpu.name) for gpu in (A, B)]
    monkeypatch.setattr(torch.cuda, "get_device_properties", facts.__getitem__)
    assert own_seat() == Seat("gpu01", (A, B))


def test_nccl_is_rejected_with_the_reason_and_the_ranks_go_on(four_ranks) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(CourseError, match=r'backend="nccl" is not possible here: there is no GPU\.') as rejected:
        four_ranks.run(lambda: None, backend="nccl")
    assert "line" not in str(rejected.value), "no line of theirs is at fault"
    assert four_ranks.run(lambda: 1, backend="gloo").results == [1] * 4
