"""What a training run costs on paper: the share of the devices' peak that it uses, device hours, and energy."""

from course_utils.errors import CourseError

HOUR = 3600.0
"""Seconds."""


def mfu(forward: float, examples: float, seconds: float, devices: float, peak: float) -> float:
    """Return the model FLOPs utilization of a training step.

    It is the share of the devices' peak that the model's own operations take, forward and backward.
    The backward pass counts as twice the operations of the forward pass. Recomputed operations do
    not count, because the model does not ask for them. A result above 1 means that one of the
    numbers is wrong, and is returned all the same.

    Args:
        forward: floating-point operations of one example's forward pass; for a token of a dense
            transformer 2 N.
        examples: of one step, on all devices together.
        seconds: that the step takes.
        devices: that take part.
        peak: FLOP/s that one device can reach at most.

    Raises:
        CourseError: `seconds`, `devices` or `peak` is not above 0.

    Source: Chowdhery et al. 2022, "PaLM", §4.1 and appendix B; Kaplan et al. 2020, §2.1 (2 N and 4
    N).
    """
    if min(seconds, devices, peak) <= 0:
        raise CourseError("Seconds, devices and peak must be above 0.")
    # The forward pass counts once and the backward pass twice. All devices together could have done what is below.
    return 3 * forward * examples / (seconds * devices * peak)


def energy(hours: float, watts: float, overhead: float = 1.1) -> float:
    """Return the watt-hours that devices draw.

    Args:
        hours: of one device.
        watts: of one device at most, from its data sheet: assumed for the whole time.
        overhead: what the whole data centre draws for each watt-hour of the devices, its PUE. 1.1 is assumed.

    Source: Touvron et al. 2023, "LLaMA", §6, equation 1 (with this PUE).
    """
    return hours * watts * overhead
