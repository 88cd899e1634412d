"""With match and the ready algorithm bandwidth."""

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.bandwidth import algorithm_bandwidth


def bus_bandwidth(operation, world_size, nbytes, seconds):
    if world_size < 1:
        raise CourseError("A group has one rank at least.")
    rate = algorithm_bandwidth(nbytes, seconds)
    match operation:
        case "all_reduce":
            return rate * 2 * (world_size - 1) / world_size
        case "reduce_scatter" | "all_gather" | "all_to_all":
            return rate * (world_size - 1) / world_size
        case "broadcast" | "reduce" | "send":
            return rate
        case _:
            raise CourseError(f"{operation} is not known.")
