"""`%%px` that speaks of ranks: ipyparallel's own magic, with output in rank order and a report when ranks hang."""

from typing import TYPE_CHECKING, Any

from course_utils.ranks.engine.reply import Reply
from course_utils.ranks.failure_report import print_from

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

_FIRST_LINE = "# %%px\n"
"""In the place of the cell's first line, so that reports count lines as the notebook does."""


def register(ranks: "Ranks") -> None:
    """Make `%px` and `%%px` of this notebook run on these ranks. Outside a notebook this does nothing."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        return
    from ipyparallel.client.magics import ParallelMagics

    from course_utils.ranks.engine_connection import EngineConnection

    connection = ranks.connection
    if not isinstance(connection, EngineConnection):
        return
    engines = connection.engines

    class RankMagics(ParallelMagics):
        """The same options; a plain `%%px` goes through `Ranks.execute`."""

        def parallel_execute(self, cell: str, block: bool | None = None, **options: Any) -> Any:
            gone = ranks.connection is None  # which `execute` says in a line
            if gone or block is not False:
                some = None if gone else _chosen_ranks(self.view.targets, engines)
                ranks.execute(_FIRST_LINE + cell, show, some)
                return None
            return super().parallel_execute(_FIRST_LINE + cell, block=block, **options)

    connection.client[engines].activate()
    view = connection.client[engines]
    view.block = True
    shell.register_magics(RankMagics(shell, view, ""))


def _chosen_ranks(targets: Any, engines: list[int]) -> list[int] | None:
    """The ranks of some engines; None for all."""
    listed = targets if isinstance(targets, list) else [targets]
    if targets in ("all", None) or listed == engines:
        return None
    return [engines.index(engine) for engine in listed]


def show(replies: list[Reply]) -> None:
    """For each rank in order: what it printed, then what it displayed."""
    from IPython.display import display

    for reply in replies:
        print_from(reply.rank, reply.output)
        for shown in reply.value or []:
            data = dict(shown["data"])
            if set(data) == {"text/plain"}:
                print_from(reply.rank, data["text/plain"])
            else:
                print(f"[rank {reply.rank}]")
                display(data, metadata=shown.get("metadata") or {}, raw=True)
