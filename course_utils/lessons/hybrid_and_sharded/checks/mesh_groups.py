"""The check of `mesh_groups`: the groups that NumPy cuts a grid of ranks into, for meshes of one to five axes."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from course_utils.checks.cases import after_another_call, rejections
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.symptoms import same

Sizes = Mapping[str, int]
Groups = dict[str, list[list[int]]]
AXES = ("data", "pipeline", "tensor", "expert")


def by_numpy(sizes: Sizes) -> Groups:
    """Each axis moved to the end of the grid of all ranks: then its groups are the rows."""
    return {axis: np.moveaxis(_grid(sizes), k, -1).reshape(-1, sizes[axis]).tolist() for k, axis in enumerate(sizes)}


def _grid(sizes: Sizes) -> np.ndarray:
    """Every rank at its place, neighbours along the last axis."""
    return np.arange(np.prod(list(sizes.values()))).reshape(*sizes.values())


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(sizes: Sizes, about: str = "", key: str = "") -> Case:
        return Case(f"the mesh {sizes}{about}", [(sizes,)], [by_numpy(sizes)], with_comm=False, key=key)

    yield case({"data": 2, "tensor": 3})
    again = case({"height": 2, "width": 3}, ", after one with the same numbers", "same-numbers")
    yield after_another_call(again, [({"data": 2, "pipeline": 3},)])
    yield case({"data": 3, "pipeline": 2, "tensor": 4})
    yield case({"tensor": 4, "data": 2})
    yield case({"data": 2, "tensor": 2, "pipeline": 3}, ", two axes equally long", "equally-long")
    yield case({"rows": 3, "columns": 2, "layers": 2, "heads": 2, "copies": 3})
    yield case({"data": 8, "pipeline": 4, "tensor": 16}, ", 512 ranks")
    yield case({"data": 5})
    yield case({"data": 1}, key="one-rank")
    yield case({"data": 3, "pipeline": 1, "tensor": 2})
    yield case({"data": 1, "tensor": 4})
    yield from rejections("mesh_groups", [({},), ({"data": 0},), ({"data": 2, "tensor": -1},), ({"a": -2, "b": -3},)])
    for axes, most in ((4, 4), (2, 6), (3, 3)):
        names = rng.permutation(AXES)[:axes]
        yield case({str(name): int(size) for name, size in zip(names, rng.integers(2, most + 1, axes), strict=True)})


def _sizes(case: Case) -> Sizes:
    return case.arguments[0][0]


def _in_order(groups: Groups) -> Groups:
    return {axis: sorted(map(sorted, of_it)) for axis, of_it in groups.items()}


def _another_order(case: Case, outcome: Outcome) -> bool:
    return same(_in_order(outcome.results[0]), by_numpy(_sizes(case)))


def _rank_missing(case: Case, outcome: Outcome) -> bool:
    total = set(range(_grid(_sizes(case)).size))
    return any({rank for group in groups for rank in group} != total for groups in outcome.results[0].values())


def _drawing(outcome: Outcome) -> Any:
    """The last mesh and its groups, where they are right."""
    from course_utils.lessons.hybrid_and_sharded.pictures import mesh

    return None if outcome.finding else mesh(_sizes(outcome.case), "Your groups of the last mesh")


EXERCISE = Exercise(
    library="device_mesh",
    number=1,
    minutes=10,
    difficulty=2,
    turn="collect the ranks whose coordinates agree on all other axes",
    title="the groups of a mesh",
    cases=_cases,
    drawing=_drawing,
    hints=(
        "Write down the coordinates of the six ranks of a mesh of 2 × 3, (0, 0), (0, 1) and so on. Take two ranks of "
        "the same group along the first axis. In which of the two numbers do they differ, and in which do they agree?",
        "`enumerate(itertools.product(*map(range, sizes.values())))` gives every rank with its coordinates. For each "
        "axis, collect the ranks in a dictionary. The key is made of all its coordinates except that on this axis, "
        "and the values of the dictionary are the groups.",
    ),
    symptoms={"the same groups stand in another order": _another_order, "a rank is in no group": _rank_missing},
    praise=lambda outcome: "right for meshes of one to five axes, with axes of one rank among them",
)
