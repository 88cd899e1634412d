"""What lies in memory during training, how a model is cut, and how many bytes each number takes."""

from dataclasses import dataclass, fields

from course_utils.errors import CourseError

NUMBER_BYTES = {"float32": 4, "float64": 8, "mixed": 2}
"""Of a parameter, a gradient and an activation. Mixed: all three in bfloat16."""
STATE_NUMBERS = {"sgd": 0, "momentum": 1, "adam": 2}
"""What the optimizer keeps for each parameter: nothing, a velocity, or a mean and a mean square."""


@dataclass(frozen=True)
class Memory:
    """Bytes on one rank.

    Attributes:
        parameters, gradients, optimizer_state: as long as training lasts.
        activations: what is saved for the backward pass, at the moment when that is most.
    """

    parameters: float
    gradients: float
    optimizer_state: float
    activations: float

    @property
    def total(self) -> float:
        """All four."""
        return self.parameters + self.gradients + self.optimizer_state + self.activations

    def parts(self) -> dict[str, float]:
        """Bytes by name, as pictures take them: "parameters", "gradients", "optimizer state", "activations"."""
        return {field.name.replace("_", " "): getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Parallelism:
    """How a model, or a pipeline's stage, is cut over data × tensor ranks.

    Attributes:
        data: replicas, each with examples of its own.
        zero: the stage of ZeRO, 0 to 3: what the replicas divide among each other.
        tensor: ranks that share each block's matrices.
        sequence: what tensor parallelism leaves whole is cut along the sequence.

    Raises:
        CourseError: fewer than one rank along an axis.
    """

    data: int = 1
    zero: int = 0
    tensor: int = 1
    sequence: bool = False

    def __post_init__(self) -> None:
        if min(self.data, self.tensor) < 1:
            raise CourseError(f"Along each axis there is at least one rank: {self} has fewer.")


ONE_RANK = Parallelism()


def bytes_for_each_parameter(optimizer: str, precision: str) -> tuple[int, int, int]:
    """Bytes of a parameter, of its gradient, and of what the optimizer keeps for it.

    In mixed precision the optimizer also keeps the parameter itself, in float32, as are its other numbers: with Adam
    2, 2 and 4 + 4 + 4.

    Raises:
        CourseError: no such optimizer or precision.

    Source: Rajbhandari et al. 2020, "ZeRO", §3.1; Micikevicius et al. 2018, "Mixed Precision Training", §3.1.
    """
    for name, table in ((optimizer, STATE_NUMBERS), (precision, NUMBER_BYTES)):
        if name not in table:
            raise CourseError(f"{name!r} is not known here. Take one of {', '.join(table)}.")
    number, kept = NUMBER_BYTES[precision], STATE_NUMBERS[optimizer]
    return number, number, 4 * (1 + kept) if precision == "mixed" else number * kept


def check_stage(stage: int, ranks: int) -> None:
    """Reject what is not a stage of ZeRO, and what is not a number of ranks.

    Raises:
        CourseError: the stage is not 0, 1, 2 or 3, or there are fewer ranks than one.
    """
    if stage not in (0, 1, 2, 3):
        raise CourseError(f"ZeRO has the stages 0, 1, 2 and 3, not {stage!r}.")
    if ranks < 1:
        raise CourseError(f"There is at least one rank, not {ranks!r}.")
