"""Training on several ranks that does not stay in step: DistributedDataParallel, FSDP2 and gradients by hand.

The mistakes are those of the classes "Call ordering" and "missing call" of the MPI Bugs Initiative, MPI-BugBench and
MPI-CorrBench, as they look where the collectives are hidden in backward and forward. None is copied.
"""


def _model():
    """A model of one layer with the same weights on every rank."""
    import torch

    torch.manual_seed(0)
    return torch.nn.Linear(4, 2)


def one_batch_less_on_rank_1():
    """Five batches for two ranks: rank 0 has three of them, and its last backward waits for rank 1.

    Finding: deadlock
    Words: backward, 0
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    model = torch.nn.parallel.DistributedDataParallel(_model())
    batches = torch.ones(5, 3, 4)[dist.get_rank() :: 2]
    for x in batches:
        model(x).pow(2).mean().backward()  # here


def one_rank_does_not_use_the_second_head():
    """Rank 1 has no boxes in its pictures and leaves the second head out, so its gradients never become ready.

    Finding: deadlock
    Words: backward, 0, 1
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    class TwoHeads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.labels, self.boxes = torch.nn.Linear(4, 2), torch.nn.Linear(4, 3)

        def forward(self, x, with_boxes):
            return self.labels(x).sum() + (self.boxes(x).sum() if with_boxes else 0)

    model = torch.nn.parallel.DistributedDataParallel(TwoHeads())
    model(torch.ones(2, 4), with_boxes=dist.get_rank() == 0).backward()  # here


def extra_forward_with_batchnorm_on_rank_1():
    """With BatchNorm each forward broadcasts the buffers; rank 1 calls the wrapped model once more for a print.

    Finding: deadlock
    Words: model, 1
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(_model(), torch.nn.BatchNorm1d(2)))
    x = torch.arange(12.0).view(3, 4)
    model(x).sum().backward()
    if dist.get_rank() == 1:
        print(model(x).mean().item())  # here


def no_sync_on_one_rank():
    """Rank 1 accumulates its gradients under no_sync, rank 0 wants to average them in the same step.

    Finding: deadlock
    Words: backward, no_sync, 0
    Group: gloo
    """
    import contextlib

    import torch
    import torch.distributed as dist

    model = torch.nn.parallel.DistributedDataParallel(_model())
    accumulate = dist.get_rank() == 1
    with model.no_sync() if accumulate else contextlib.nullcontext():  # here
        model(torch.ones(3, 4)).sum().backward()  # here


def layers_of_another_size_on_rank_1():
    """The width comes from the data of each rank, so the models differ.

    Finding: error
    Words: DistributedDataParallel
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    labels = [[0, 1, 2], [0, 1, 1]][dist.get_rank()]
    model = torch.nn.Linear(4, len(set(labels)))
    model = torch.nn.parallel.DistributedDataParallel(model)  # here
    model(torch.ones(3, 4)).sum().backward()


def each_rank_stops_when_its_own_loss_is_small():
    """Early stopping is decided by each rank alone; rank 1 stops first and rank 0 goes on.

    Finding: deadlock
    Words: backward, 0, 1
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    model = torch.nn.parallel.DistributedDataParallel(_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.ones(3, 4) / (1 + 9 * dist.get_rank())
    target = torch.tensor([5.0, 5.0]) * (1 - dist.get_rank())
    for _ in range(20):
        loss = (model(x) - target).pow(2).mean()
        if loss < 1:
            break
        optimizer.zero_grad()
        loss.backward()  # here
        optimizer.step()


def evaluation_on_rank_0_with_a_sum_inside():
    """evaluate sums over all ranks, but only rank 0 calls it; rank 1 is already in barrier.

    Finding: deadlock
    Words: all_reduce, barrier, 0
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    model = _model()

    def evaluate():
        with torch.no_grad():
            right = (model(torch.ones(50, 4)) > 0).float()
        dist.all_reduce(right)  # here
        return right.mean().item()

    if dist.get_rank() == 0:
        evaluate()
    dist.barrier()  # here


def barrier_inside_the_saving_of_rank_0():
    """The checkpoint is written by rank 0, and the barrier stands in its branch.

    Finding: deadlock
    Words: barrier, 0
    Group: gloo
    """
    import io

    import torch
    import torch.distributed as dist

    model = torch.nn.parallel.DistributedDataParallel(_model())
    for epoch in range(2):
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), io.BytesIO())
            dist.barrier()  # here


def sharded_model_with_one_step_less_on_rank_1():
    """fully_shard gathers the weights in each forward; rank 1 has one step fewer, and rank 0 waits.

    Finding: deadlock
    Words: model, 0
    Group: gloo
    """
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = _model()
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
    for _ in range(2 if dist.get_rank() == 0 else 1):
        loss = model(torch.ones(3, 4)).sum()  # here
        loss.backward()  # here


def full_weights_asked_for_by_rank_0_only():
    """full_tensor gathers the shards of all ranks, and only rank 0 asks for it.

    Finding: deadlock
    Words: full_tensor, 0
    Group: gloo
    """
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = _model()
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
    if dist.get_rank() == 0:
        {name: weight.full_tensor() for name, weight in model.named_parameters()}  # here


def gradients_that_are_none_are_skipped():
    """Averaging by hand leaves out parameters without a gradient, and they are not the same on the ranks.

    Finding: deadlock
    Words: all_reduce, 0
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    model = torch.nn.ModuleDict({"text": torch.nn.Linear(4, 2), "image": torch.nn.Linear(4, 2)})
    parts = ["text", "image"] if dist.get_rank() == 0 else ["text"]
    sum(model[part](torch.ones(1, 4)).sum() for part in parts).backward()
    for parameter in model.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)  # here


def loader_with_workers_has_one_batch_less_on_rank_1():
    """The threads of a DataLoader with workers bring batches, and never communicate.

    Finding: deadlock
    Words: all_reduce, 0
    Ranks: 2
    Group: gloo
    """
    import torch.distributed as dist
    from torch.utils.data import DataLoader

    for batch in DataLoader(range(6 - 2 * dist.get_rank()), batch_size=2, num_workers=1):
        dist.all_reduce(batch)  # here


def bad_batch_skipped_by_one_rank():
    """Rank 0 leaves a batch with a NaN out, and with it the backward in which rank 1 waits.

    Finding: deadlock
    Words: backward, 1
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    model = torch.nn.parallel.DistributedDataParallel(_model())
    batches = torch.ones(3, 2, 4)
    if dist.get_rank() == 0:
        batches[1, 0, 0] = float("nan")
    for x in batches:
        loss = model(x).mean()
        if not loss.isfinite():
            continue
        loss.backward()  # here


def same_number_of_steps():
    """Rank 0 has a batch more but leaves it out: both take two steps.

    Finding: correct
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    model = torch.nn.parallel.DistributedDataParallel(_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.ones(5, 3, 4)[dist.get_rank() :: 2][:2]:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()


def uneven_batches_with_join():
    """Rank 0 has one batch more, but join makes the other rank answer for it.

    Finding: correct
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    model = torch.nn.parallel.DistributedDataParallel(_model())
    with model.join():
        for x in torch.ones(5, 3, 4)[dist.get_rank() :: 2]:
            model(x).pow(2).mean().backward()


def no_sync_on_all_ranks():
    """All ranks accumulate two batches under no_sync and average with the third.

    Finding: correct
    Ranks: 3
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    model = torch.nn.parallel.DistributedDataParallel(_model())
    x = torch.full((2, 4), float(dist.get_rank()))
    with model.no_sync():
        for _ in range(2):
            model(x).sum().backward()
    model(x).sum().backward()


def early_stopping_agreed():
    """The ranks have different losses, but stop by their mean, which is the same on all.

    Finding: correct
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    model = torch.nn.parallel.DistributedDataParallel(_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x = torch.ones(3, 4) / (1 + 9 * dist.get_rank())
    for _ in range(20):
        loss = model(x).pow(2).mean()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if mean < 0.01:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def rank_0_looks_at_the_model_inside_and_saves():
    """Rank 0 alone runs model.module, which sends nothing, and saves; all ranks meet in the barrier after the if.

    Finding: correct
    Group: gloo
    """
    import io

    import torch
    import torch.distributed as dist

    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(_model(), torch.nn.BatchNorm1d(2)))
    x = torch.arange(12.0).view(3, 4)
    for _ in range(2):
        model(x).sum().backward()
        if dist.get_rank() == 0:
            print(model.module(x).mean().item())
            torch.save(model.module.state_dict(), io.BytesIO())
        dist.barrier()


def gradients_averaged_by_hand():
    """Each parameter takes part in every sum, with zeros where the rank has no gradient.

    Finding: correct
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    model = torch.nn.ModuleDict({"text": torch.nn.Linear(4, 2), "image": torch.nn.Linear(4, 2)})
    parts = ["text", "image"] if dist.get_rank() == 0 else ["text"]
    sum(model[part](torch.ones(1, 4)).sum() for part in parts).backward()
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def sharded_model_in_step():
    """Both ranks take two steps with the sharded model and ask for the full weights together.

    Finding: correct
    Group: gloo
    """
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = _model()
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
    for _ in range(2):
        model(torch.ones(3, 4)).sum().backward()
    weights = {name: weight.full_tensor() for name, weight in model.named_parameters()}
    assert weights["weight"].shape == (2, 4)


def checkpoint_saved_by_all_but_one():
    """torch's distributed checkpoint needs all ranks; one thinks that it has nothing to save.

    Finding: deadlock
    Words: barrier, 1
    Group: gloo
    """
    import tempfile

    import torch.distributed as dist
    import torch.distributed.checkpoint as checkpoint

    with tempfile.TemporaryDirectory() as folder:
        if dist.get_rank() == 0:
            checkpoint.save({"model": _model().state_dict()}, checkpoint_id=folder)  # here
        dist.barrier()  # here


def spread_tensor_gathered_on_rank_0_only():
    """redistribute gathers the parts of a DTensor, which takes all ranks that hold some.

    Finding: deadlock
    Words: barrier, redistribute
    Group: gloo
    """
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (2,))
    spread = distribute_tensor(torch.arange(8.0), mesh, [Shard(0)])
    if dist.get_rank() == 0:
        spread.redistribute(mesh, [Replicate()])  # here
    dist.barrier()  # here


def pipeline_with_a_slow_last_stage():
    """Two stages of torch's pipelining, one forward and one backward by turns; the first waits for the second.

    Finding: correct
    Group: gloo
    """
    import time

    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    class Slow(torch.nn.Linear):
        def forward(self, x):
            time.sleep(0.1 * dist.get_rank())
            return super().forward(x)

    rank = dist.get_rank()
    stage = PipelineStage(Slow(4, 4), rank, 2, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=torch.nn.MSELoss())
    for _ in range(2):
        if rank == 0:
            schedule.step(torch.ones(8, 4))
        else:
            schedule.step(target=torch.ones(8, 4))
