"""All sums under way at once; the local backward pass through a product."""

import torch
import torch.distributed as dist


def hybrid_step(convolutions, dense, x, y, loss):
    alone = dist.get_rank() == 0
    size = dist.get_world_size()
    h = convolutions(x)
    hs = [h.detach().clone() for _ in range(size)] if alone else None
    ys = [y.clone() for _ in range(size)] if alone else None
    dist.gather(h.detach(), hs, dst=0)
    dist.gather(y, ys, dst=0)
    back, result = torch.zeros(h.shape, dtype=h.dtype), torch.zeros(())
    if alone:
        h_all = torch.concatenate(hs).requires_grad_()
        result = loss(dense(h_all), torch.concatenate(ys))
        result.backward()
        dist.scatter(back, [part.clone() for part in h_all.grad.chunk(size)])
    else:
        dist.scatter(back)
    (h * back).sum().backward()
    works = [dist.all_reduce(p.grad, async_op=True) for p in reversed(list(convolutions.parameters()))]
    for work in works:
        work.wait()
    return float(result)
