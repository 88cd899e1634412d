"""What a training costs, on paper: its arithmetic against the devices' peak, in device-hours, in energy."""

from course_utils.errors import CourseError

HOUR = 3600.0
"""Seconds."""


def mfu(forward: float, examples: float, seconds: float, devices: float, peak: float) -> float:
    """Model FLOPs utilization: the share of the devices' peak that a training step's own arithmetic
    takes.

    The backward pass has twice the products of the forward pass. What is computed a second time to
    save memory does not count: the model does not ask for it. More than 1 says that a number is
    wrong; it is returned as it is.

    Args:
        forward: floating-point operations of one example's forward pass; for a token of a dense
            transformer 2 N.
        examples: of one step, on all devices together.
        seconds: of the step.
        devices: that took part.
        peak: FLOP/s of one device at most.

    Raises:
        CourseError: `seconds`, `devices` or `peak` is not above 0.

    Source: Chowdhery et al. 2022, "PaLM", §4.1 and appendix B; Kaplan et al. 2020, §2.1 (2 N and 4
    N).
    """
    if min(seconds, devices, peak) <= 0:
        raise CourseError("Seconds, devices and peak must be above 0.")
    # Forward once, backward twice as much; against what all devices could have done in this time.
    return 3 * forward * examples / (seconds * devices * peak)


def device_hours(forward: float, examples: float, utilization: float, peak: float) -> float:
    """Hours of one device that a training with so many examples takes; on P devices they pass in a P-th.

    Args:
        forward: floating-point operations of one example's forward pass.
        examples: of the whole training.
        utilization: the MFU that it reaches, 0 to 1.
        peak: FLOP/s of one device at most.

    Raises:
        CourseError: `utilization` or `peak` is not above 0.
    """
    if min(utilization, peak) <= 0:
        raise CourseError("A device without arithmetic never ends. Take a utilization and a peak above 0.")
    return 3 * forward * examples / (utilization * peak) / HOUR


def energy(hours: float, watts: float, overhead: float = 1.1) -> float:
    """Watt-hours that devices draw.

    Args:
        hours: of one device.
        watts: of one device at most, from its data sheet: assumed for the whole time.
        overhead: the building's energy for each unit of the devices', PUE: cooling and current. 1.1 is assumed.

    Source: Touvron et al. 2023, "LLaMA", §6, equation 1 (with this PUE).
    """
    return hours * watts * overhead
