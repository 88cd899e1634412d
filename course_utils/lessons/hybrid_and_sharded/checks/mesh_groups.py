"""The check of `mesh_groups`: the groups that NumPy cuts a grid of ranks into, for meshes of one to four axes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from course_utils.checks.cases import must_refuse, refusals
from course_utils.checks.compare import describe, difference, kind_of
from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, nothing_returned, same
from course_utils.lessons.hybrid_and_sharded.checks import LESSON

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
    def case(sizes: Sizes) -> Case:
        sizes = {axis: int(size) for axis, size in sizes.items()}
        return Case(f"the mesh {sizes}", [(sizes,)], None, [{0: dict(sizes)}], with_comm=False, judge=_groups)

    yield case({"data": 2, "tensor": 3})
    yield case({"data": 3, "pipeline": 2, "tensor": 4})
    yield case({"tensor": 4, "data": 2})
    yield case({"data": 5})
    yield case({"data": 1})
    yield case({"data": 3, "pipeline": 1, "tensor": 2})
    yield case({"data": 1, "tensor": 4})
    yield from refusals("mesh_groups", [({},), ({"data": 0},), ({"data": 2, "tensor": -1},)])
    for axes, most in ((4, 4), (2, 6), (3, 3)):
        names = rng.permutation(AXES)[:axes]
        yield case({str(name): size for name, size in zip(names, rng.integers(2, most + 1, axes), strict=True)})


def _groups(outcome: Outcome) -> str | None:
    """What is wrong with the groups of the first axis that has others."""
    got, wanted = outcome.results[0], by_numpy(_sizes(outcome.case))
    for axis in wanted:
        if kind_of(got) == "dict" and axis in got and difference(0, got[axis], wanted[axis]):
            return f'along "{axis}" the groups are {describe(got[axis])}, expected {describe(wanted[axis])}'
    return difference(0, got, wanted)


def _is(formula: Callable[[Sizes], Groups]) -> Recogniser:
    """A recogniser of the groups that another rule gives."""
    return lambda case, outcome: case.harness is None and same(outcome.results[0], formula(_sizes(case)))


def _sizes(case: Case) -> Sizes:
    return next(iter(case.expected_arguments[0].values()))


def _first_axis_fastest(sizes: Sizes) -> Groups:
    turned = by_numpy({axis: sizes[axis] for axis in reversed(sizes)})
    return {axis: turned[axis] for axis in sizes}


def _who_share_a_place(sizes: Sizes) -> Groups:
    grid = _grid(sizes)
    return {axis: np.moveaxis(grid, k, 0).reshape(sizes[axis], -1).tolist() for k, axis in enumerate(sizes)}


def _neighbours(sizes: Sizes) -> Groups:
    return {axis: _grid(sizes).reshape(-1, size).tolist() for axis, size in sizes.items()}


def _group_of_rank_0(sizes: Sizes) -> Groups:
    return {axis: groups[0] for axis, groups in by_numpy(sizes).items()}


def _in_order(groups: Groups) -> Groups:
    return {axis: sorted(map(sorted, of_it)) for axis, of_it in groups.items()}


def _another_order(case: Case, outcome: Outcome) -> bool:
    return same(_in_order(outcome.results[0]), by_numpy(_sizes(case)))


def _not_lists(case: Case, outcome: Outcome) -> bool:
    found = [groups for groups in outcome.results[0].values()]
    kinds = {kind_of(one) for groups in found for one in (groups, *groups)}
    return not kinds <= {"list", "tuple", "int"}


def _one_left_out(case: Case, outcome: Outcome) -> bool:
    return any(size == 1 and not outcome.results[0].get(axis) for axis, size in _sizes(case).items())


def _argument_changed(case: Case, outcome: Outcome) -> bool:
    return case.harness is None and not same(outcome.arguments[0][0], _sizes(case))


def _rank_missing(case: Case, outcome: Outcome) -> bool:
    total = set(range(_grid(_sizes(case)).size))
    return any({rank for group in groups for rank in group} != total for groups in outcome.results[0].values())


def _drawing(outcome: Outcome) -> Any:
    """The last mesh and its groups, where they are right."""
    from course_utils.lessons.hybrid_and_sharded.pictures import mesh

    return None if outcome.wrong else mesh(_sizes(outcome.case), "Your groups of the last mesh")


MESH_GROUPS = Exercise(
    name="mesh_groups",
    library="course_utils.lessons.hybrid_and_sharded.device_mesh:mesh_groups",
    lesson=LESSON,
    place=1,
    minutes=10,
    difficulty=2,
    turn="together are those who differ along one axis only",
    title="who talks to whom on a mesh",
    cases=_cases,
    drawing=_drawing,
    hints=(
        "Write down the places of the ranks of a mesh of 2 × 3, (0, 0), (0, 1), … Two ranks are in one group of the "
        "first axis: in which of the two numbers do they differ, and in which must they agree?",
        "`enumerate(itertools.product(*map(range, sizes.values())))` gives every rank with its place. For each axis, "
        "collect the ranks in a dict under their place without the number of this axis; its values are the groups.",
    ),
    mistakes=(
        Mistake("What does the docstring promise for what is no mesh?", must_refuse),
        Mistake("Where is the `return`?", nothing_returned),
        Mistake("Whose dict did you change?", _argument_changed),
        Mistake("Has an axis of one rank no groups?", _one_left_out),
        Mistake("How many groups along each axis does it take for every rank to be in one?", _is(_group_of_rank_0)),
        Mistake("Are the groups lists of whole numbers?", _not_lists),
        Mistake("Along which axis are the ranks 0 and 1 neighbours, the first or the last?", _is(_first_axis_fastest)),
        Mistake("Have the ranks of a group the same place along its axis, or all another?", _is(_who_share_a_place)),
        Mistake("How far apart are two neighbours along an axis that is not the last?", _is(_neighbours)),
        Mistake("In which order do the groups stand, and the ranks of each?", _another_order),
        Mistake("Is every rank in one group of each axis?", _rank_missing),
    ),
    praise=lambda outcome: "meshes of one to four axes, axes of one rank too; every rank is in one group of each axis",
)
