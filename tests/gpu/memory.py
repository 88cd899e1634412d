"""Lessons 11 and 14 on a GPU: what its allocator has given out, beside `training_memory`'s formula and a trace."""

import torch
from torch.nn.functional import cross_entropy

from course_utils.lessons.model_parallel.memory_counter import measured_memory
from course_utils.lessons.model_parallel.memory_parts import Memory
from course_utils.lessons.model_parallel.training_memory import training_memory
from course_utils.lessons.model_parallel.transformer import character_model
from gpu.registry import Where, check, equal, needs_gpu
from workshop.bench.rows import Row, value_row

OFF = 0.05
"""A part may differ by so much."""
CHARACTERS = 96
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
}


def sizes_of(where: Where) -> dict[str, int]:
    """Of the model and its batch; on a GPU large enough that the allocator's pieces of 512 bytes do not count."""
    return where.pick(
        {"width": 512, "heads": 8, "depth": 6, "length": 512, "batch": 16},
        {"width": 64, "heads": 4, "depth": 2, "length": 32, "batch": 4},
    )


def made(where: Where, dropout: float):
    """A model, a function that makes the loss of its batch, and the sizes for the formula."""
    sizes = sizes_of(where)
    length, batch = sizes.pop("length"), sizes.pop("batch")
    text = torch.randint(CHARACTERS, (batch, length), device=where.device)
    model = character_model(CHARACTERS, context=length, dropout=dropout, **sizes).to(where.device)

    def loss() -> torch.Tensor:
        return cross_entropy(model(text).flatten(0, 1), text.flatten())

    return model, loss, (batch, length)


def allocated(where: Where, optimizer_name: str) -> tuple[Memory, int, Memory]:
    """What lies in the GPU's memory for each part, at most in a step, and by the formula."""
    empty = torch.cuda.memory_allocated()
    model, loss, sizes = made(where, 0.0)
    parameters = torch.cuda.memory_allocated() - empty
    loss().backward()  # cuBLAS takes its workspaces, forward and backward, and keeps them
    model.zero_grad()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    optimizer = OPTIMIZERS[optimizer_name](model.parameters())
    torch.cuda.reset_peak_memory_stats()
    now = loss()
    saved = torch.cuda.memory_allocated() - before
    now.backward()
    del now
    gradients = torch.cuda.memory_allocated() - before
    optimizer.step()
    torch.cuda.synchronize()
    state = torch.cuda.memory_allocated() - before - gradients
    most = torch.cuda.max_memory_allocated() - before + parameters
    return Memory(parameters, gradients, state, saved), most, training_memory(model, *sizes, optimizer_name)


def rows_of(name: str, measured: Memory, formula: Memory):
    """A row for each part: measured / formula, at most 5% beside 1."""
    for part, expected in formula.parts().items():
        got = measured.parts()[part]
        if not expected:
            yield Row("gpu", f"{name}, {part}, MB", got / 1e6, "MB", "lower", 0.001, 0.0, 1)
            continue
        off = abs(got / expected - 1)
        yield Row("gpu", f"{name}, {part}, {expected / 1e6:.1f} MB, off by", 100 * off, "%", "lower", 100 * OFF, 0.0, 1)


@check(11, shows="the bytes that the GPU's allocator has given out are those of `training_memory`, part by part")
def allocator(where: Where):
    needs_gpu(where)
    for optimizer in OPTIMIZERS:
        measured, most, formula = allocated(where, optimizer)
        yield from rows_of(optimizer, measured, formula)
        yield Row(
            "gpu", f"{optimizer}, most in a step / formula's total", most / formula.total, "×", "lower", None, 0, 1
        )
        torch.cuda.empty_cache()


@check(14, shows="the peak of a step's memory in a trace is the one that the GPU's allocator has counted")
def memory_in_trace(where: Where):
    needs_gpu(where)
    from course_utils.lessons.profiling.step_memory import memory_of_step

    def make_step():
        model, loss, _ = made(where, 0.0)

        def step() -> None:
            torch.cuda.reset_peak_memory_stats()
            model.zero_grad()
            loss().backward()

        return step

    held = memory_of_step(make_step)
    yield value_row("gpu", f"most in a step, {held.device}", [held.peak / 1e6], "MB")
    apart = abs(held.before + held.peak - torch.cuda.max_memory_allocated())
    yield equal("bytes by which trace and allocator differ", apart, target=0)


@check(
    9, 11, shows="the tensors that are kept, counted, are those of `training_memory`, with dropout and checkpointing"
)
def counted_tensors(where: Where):
    from course_utils.lessons.model_parallel.activation_checkpointing import checkpointed

    for dropout in (0.0, 0.1):
        for again in (False, True):
            model, _, sizes = made(where, dropout)
            formula = training_memory(model, *sizes, "adam", checkpointing=again)
            if again:
                model = checkpointed(model)
            text = torch.randint(CHARACTERS, sizes, device=where.device)
            optimizer = OPTIMIZERS["adam"](model.parameters())

            def step(model=model, text=text, optimizer=optimizer) -> None:
                cross_entropy(model(text).flatten(0, 1), text.flatten()).backward()
                optimizer.step()

            name = f"dropout {dropout:g}{', checkpointed' if again else ''}"
            yield from rows_of(name, measured_memory(model, optimizer, step), formula)
