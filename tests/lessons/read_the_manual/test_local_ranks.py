"""PyTorch's simulated ranks: each part is there, collectives combine them, and nothing is left behind."""

import pytest
import torch
import torch.distributed as dist
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

from course_utils.errors import CourseError
from course_utils.lessons.read_the_manual.local_ranks import local_ranks, parts_of


def test_each_rank_has_its_part_and_a_collective_combines_them() -> None:
    x, w = torch.arange(12.0).view(3, 4), torch.arange(8.0).view(4, 2)
    with local_ranks(4) as mesh:
        columns, rows = (distribute_tensor(x, mesh, [Shard(1)]), distribute_tensor(w, mesh, [Shard(0)]))
        assert [part.tolist() for part in parts_of(columns.to_local())] == [x[:, [rank]].tolist() for rank in range(4)]
        product = columns @ rows
        assert product.placements == (Partial("sum"),)
        whole = parts_of(product.redistribute(mesh, [Replicate()]).to_local())
    assert len(whole) == 4 and all(torch.equal(part, x @ w) for part in whole)
    assert not dist.is_initialized()


def test_the_group_is_gone_after_an_error_and_ordinary_tensors_have_no_parts() -> None:
    ordinary = torch.zeros(2)
    with pytest.raises(CourseError, match="no parts"), local_ranks(2):
        parts_of(ordinary)
    assert not dist.is_initialized()
    with local_ranks(2), pytest.raises(CourseError, match="already"), local_ranks(2):
        pass
    assert not dist.is_initialized()
