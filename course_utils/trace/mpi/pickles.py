"""Objects as bytes, as mpi4py sends them; and those that only a notebook can define, by value."""

import pickle
from typing import Any


def pickle_object(thing: Any) -> bytes:
    """The object as bytes. An instance of a class from a cell takes its class with it: no rank can import that."""
    try:
        return pickle.dumps(thing, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        import cloudpickle  # which a machine with torch alone has not

        return cloudpickle.dumps(thing, protocol=5)
