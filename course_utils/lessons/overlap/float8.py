"""Numbers of 8 bits on the wire: each block of them has a scaling factor, and sums are made in float32.

E4M3 keeps 3 digits after the binary point, so a rounded number is off by up to 6%. It takes one byte where float32
takes four. A collective that only moves numbers, such as an all-gather, can move these bytes as they are. One that adds
can't: torch has no addition of such numbers, and the sum of two blocks with different factors belongs to neither.

Source: Micikevicius et al. 2022, "FP8 Formats for Deep Learning"; the all-reduce by an all-to-all is that of Wang et
al. 2023, "ZeRO++", with 8 bits instead of 4.
"""

import torch
import torch.distributed as dist
from torch.nn.functional import pad

E4M3 = torch.float8_e4m3fn


def quantise(values: torch.Tensor, block: int = 128) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the values as numbers of 8 bits, and the scaling factor of each block.

    The factor of a block is its largest magnitude divided by 448, the largest number of E4M3. A block of zeros has the
    factor 1.

    Args:
        values: (n,), float32.
        block: how many values share a factor; n is a multiple of it.

    Returns:
        (numbers, scales): (n,), E4M3, and (n / block,), float32.
    """
    blocks = values.view(-1, block)
    scales = blocks.abs().amax(1, keepdim=True) / torch.finfo(E4M3).max
    scales = torch.where(scales == 0, 1, scales)
    return (blocks / scales).to(E4M3).flatten(), scales.flatten()


def dequantise(numbers: torch.Tensor, scales: torch.Tensor, block: int = 128) -> torch.Tensor:
    """Return the values that `quantise` has rounded, as float32, of the shape of `numbers`."""
    return (numbers.float().view(-1, block) * scales[:, None]).view_as(numbers)


def float8_all_reduce(vector: torch.Tensor, block: int = 128) -> torch.Tensor:
    """Return the sum of all ranks' vectors; only numbers of 8 bits and their scales are sent.

    Every number is rounded twice, however many ranks there are: by its own rank before it is sent,
    and as a part of the sum. The sums in between are float32. All ranks return the same bits.

    Args:
        vector: (n,), float32, of any length, this rank's own. It keeps its values.
        block: how many numbers share a scale, for `quantise` and `dequantise`.

    Returns:
        (n,), float32.

    Source: Wang et al. 2023, "ZeRO++".
    """
    ranks, n = dist.get_world_size(), vector.numel()
    # A part for every rank, each of whole blocks.
    part = -(-n // (ranks * block)) * block
    numbers, scales = quantise(pad(vector, (0, ranks * part - n)), block)

    # Rank r gets part r of every vector. Gloo doesn't know numbers of 8 bits, but it sends bytes.
    all_numbers, all_scales = torch.empty_like(numbers), torch.empty_like(scales)
    dist.all_to_all_single(all_numbers.view(torch.uint8), numbers.view(torch.uint8))
    dist.all_to_all_single(all_scales, scales)
    mine = dequantise(all_numbers, all_scales, block).view(ranks, part).sum(0)

    # All ranks use the rounded sum, also of their own part. Otherwise they would differ.
    numbers, scales = quantise(mine, block)
    dist.all_gather_single(all_numbers.view(torch.uint8), numbers.view(torch.uint8))
    dist.all_gather_single(all_scales, scales)
    return dequantise(all_numbers, all_scales, block)[:n]


def float8_hook(block: int, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """A communication hook: the mean of the ranks' gradients, with 8 bits for every number that is sent."""
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(float8_all_reduce(bucket.buffer(), block) / dist.get_world_size())
    return done
