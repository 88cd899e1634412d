"""What each stage of ZeRO keeps and sends, on paper.

Parameters, gradients and the optimizer's state are the same on every rank of a data-parallel training. Stage 1 divides
the optimizer's state among the ranks, stage 2 the gradients too, stage 3 also the parameters.
"""

from course_utils.lessons.model_parallel.memory_parts import check_stage


def zero_memory(
    parameters: float,
    ranks: int,
    stage: int,
    parameter_bytes: float = 2,
    gradient_bytes: float = 2,
    state_bytes: float = 12,
) -> float:
    """Return the bytes of parameters, gradients and optimizer state that each rank keeps.

    Args:
        parameters: how many the model has.
        stage: 0 (plain data parallelism), 1, 2 or 3.
        parameter_bytes, gradient_bytes, state_bytes: for one parameter. The defaults are those of
            the paper for mixed precision with Adam: 2 and 2 in half precision, and 12 for a copy of
            the parameter, its mean and its square in single precision.

    Raises:
        CourseError: there is no such stage, or fewer than one rank.

    Source: Rajbhandari et al. 2020, §3.1 and figure 1.
    """
    check_stage(stage, ranks)
    # Stage 1 divides the state among the ranks, stage 2 also the gradients, stage 3 also the parameters.
    divided = [state_bytes, gradient_bytes, parameter_bytes][:stage]
    whole = [state_bytes, gradient_bytes, parameter_bytes][stage:]
    return parameters * (sum(whole) + sum(divided) / ranks)


def zero_traffic(parameters: float, ranks: int, stage: int, element_bytes: float = 2) -> float:
    """Bytes that each rank sends in a step, with the best algorithms (rings).

    Stages 0, 1, 2: a reduce-scatter and an all-gather, together an all-reduce: 2 (P − 1)/P of
    the model. Stage 3 gathers the parameters twice, before the forward and before the backward
    pass: 3 (P − 1)/P.

    Args:
        element_bytes: of one number as it travels.

    Raises:
        CourseError: no such stage, or fewer than one rank.

    Source: Rajbhandari et al. 2020, §7.2.
    """
    check_stage(stage, ranks)
    return (3 if stage == 3 else 2) * (ranks - 1) / ranks * parameters * element_bytes


def fits(
    parameters: float,
    ranks: int,
    stage: int,
    memory: float,
    activations: float = 0.0,
    **bytes_of: float,
) -> bool:
    """Return whether a model and one rank's activations fit into the memory of one rank.

    Args:
        parameters, ranks, stage: as for `zero_memory`.
        memory: bytes of one rank.
        activations: bytes of one rank, which ZeRO does not divide.
        bytes_of: `parameter_bytes`, `gradient_bytes` and `state_bytes`, for `zero_memory`.

    Raises:
        CourseError: there is no such stage, or fewer than one rank.
    """
    return zero_memory(parameters, ranks, stage, **bytes_of) + activations <= memory
