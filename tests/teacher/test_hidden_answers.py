"""The course's own answers are hidden while others are judged, also those in modules that the answer imports itself."""

import sys

import pytest

from course_utils.checks.hidden_answer import call_without

MODULE = "course_utils.lessons.allreduce.ring"
PLACES = [f"{MODULE}:{name}" for name in ("ring_allreduce", "ring_reduce_scatter", "ring_all_gather")]


def imported_within(name: str) -> str:
    """What a hidden function raises when its module is first imported while it is hidden."""
    module = __import__(MODULE, fromlist=[name])
    with pytest.raises(NotImplementedError) as raised:
        getattr(module, name)(None, None)
    return str(raised.value)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("name", ["ring_allreduce", "ring_reduce_scatter", "ring_all_gather"])
def test_several_functions_of_a_module_are_hidden_when_it_is_imported_within(name, twice, monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    call = [call_without, PLACES, imported_within, name]
    text = call_without(PLACES, *call) if twice else call[0](*call[1:])
    assert "is hidden while" in text
