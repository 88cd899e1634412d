"""Kernels are asked for and come later; streams are queues that the GPU serves side by side."""

import time

import torch

from course_utils.measuring import by_turns
from gpu.registry import Where, check, equal, needs_gpu
from gpu.timing import seconds
from workshop.bench.rows import Row, ratio_row, value_row


def time_of_call(work) -> tuple[float, float]:
    """Seconds until `work()` returns, and until the GPU has done it."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    returned = time.perf_counter() - began
    torch.cuda.synchronize()
    return returned, time.perf_counter() - began


@check(3, 14, shows="a call returns before its kernel is done; `.item()` waits for it")
def asynchrony(where: Where):
    needs_gpu(where)
    x = torch.randn(8192, 8192, device="cuda")
    taken = {"a product": lambda: x @ x, "a product and .item()": lambda: (x @ x)[0, 0].item()}
    for work in taken.values():
        time_of_call(work)
    for name, work in taken.items():
        pairs = [time_of_call(work) for _ in range(9)]
        returned, done = zip(*pairs, strict=True)
        target, better = (0.5, "lower") if name == "a product" else (0.9, "higher")
        yield ratio_row(
            "gpu", f"{name}: until it returns / until it is done", returned, done, target=target, better=better
        )


@check(7, 14, shows="a copy on a side stream travels while the main stream computes, and an event orders the two")
def side_stream(where: Where):
    needs_gpu(where)
    x = torch.randn(4096, 4096, device="cuda")
    host = torch.empty(1 << 28, dtype=torch.uint8, pin_memory=True)
    there, side = torch.empty_like(host, device="cuda"), torch.cuda.Stream()

    def copy() -> None:
        there.copy_(host, non_blocking=True)

    def compute(times: int) -> None:
        for _ in range(times):
            torch.mm(x, x)

    def both(times: int) -> None:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            copy()
        compute(times)
        torch.cuda.current_stream().wait_stream(side)

    for _ in range(3):
        both(1)
    times = max(1, round(seconds(where, copy) / seconds(where, lambda: compute(1))))  # both take equally long
    taken = by_turns(
        {
            "copy": lambda: seconds(where, copy),
            "compute": lambda: seconds(where, lambda: compute(times)),
            "both": lambda: seconds(where, lambda: both(times)),
        },
        rounds=9,
    )
    for name, values in taken.items():
        yield value_row("gpu", name, [1e3 * one for one in values], "ms")
    one_by_one = [sum(pair) for pair in zip(taken["copy"], taken["compute"], strict=True)]
    yield ratio_row("gpu", "both at once / one after the other", taken["both"], one_by_one, target=0.8)


@check(7, 14, shows="what an event waits for is done: a stream reads what another has written, and nothing older")
def events(where: Where):
    needs_gpu(where)
    side, x = torch.cuda.Stream(), torch.zeros(1 << 24, device="cuda")
    wrong = 0
    for turn in range(1, 21):
        x.fill_(turn)
        written, seen = torch.cuda.Event(), torch.cuda.Event()
        written.record()
        with torch.cuda.stream(side):
            side.wait_event(written)
            copy = x.clone()
            seen.record()
        torch.cuda.current_stream().wait_event(seen)
        copy.record_stream(torch.cuda.current_stream())
        wrong += int((copy != turn).any())
    yield equal("turns in which something old was read", wrong, target=0)
    early = torch.cuda.Event()
    early.record()
    early.synchronize()
    yield Row("gpu", "an event that was waited for says so", float(early.query()), "", "higher", 1.0, 0.0, 1)
