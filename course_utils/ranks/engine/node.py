"""A rank in a node of its own: enters the node's network, then becomes the engine that `engine.py` describes.

Started under mpiexec as `python -m course_utils.ranks.engine.node FOLDER NODE`.

Only the thread that enters a network moves, and those that it starts later. The notebook's messages are sent and
received by ZeroMQ's own threads; they are started first, and so stay in the machine's network, where the notebook is.
MPI opens its sockets when it is imported, afterwards: in the node's network, which leads to the other nodes alone.
"""

import contextlib
import ctypes
import os
import sys

import zmq
from ipyparallel.engine import app

from course_utils.system import enter_namespace

_PMIX = "libpmix.so.2"
_BYTES_OF_A_PMIX_PROCESS = 256 + 4  # pmix_proc_t: a name and a number


def start_messengers() -> None:
    """Start ZeroMQ's threads, which come with a context's first socket: the engine's, and its heart's."""
    heart_context = zmq.Context()
    for context in (zmq.Context.instance(), heart_context):
        context.socket(zmq.PAIR).close()

    class NodeHeart(app.Heart):
        """ipyparallel would give each heart a new context, with threads in the node's network."""

        def start(self):
            self.device.context_factory = lambda: heart_context
            return super().start()

    app.Heart = NodeHeart


def meet_launcher() -> None:
    """Connect to Open MPI's launcher, which listens in the machine's network: MPI goes on with the same connection.

    Open MPI's ranks talk to it over PMIx. MPICH's have inherited a socket. Where PMIx's library is a part of Open MPI
    and cannot be called, there is nothing to be done here, and MPI does not start.

    Source: PMIx Standard 4.1, `PMIx_Init`: each further call of it counts, and does nothing else.
    """
    if "PMIX_RANK" not in os.environ:
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(_PMIX).PMIx_Init(ctypes.create_string_buffer(_BYTES_OF_A_PMIX_PROCESS), None, ctypes.c_size_t(0))


def enter(node: str) -> None:
    """Move this thread into the network that `node`, a file, stands for.

    Raises:
        OSError: the system does not allow it.
    """
    descriptor = os.open(node, os.O_RDONLY)
    enter_namespace("net", descriptor)
    os.close(descriptor)
    # NCCL takes nodes of one machine for one, and hands memory over by sockets that no other network can reach.
    os.environ["NCCL_HOSTID"] = f"emulated-{os.path.basename(node)}"


def main(folder: str, node: str) -> None:
    """Be the engine of the ranks' folder, in that node."""
    start_messengers()
    meet_launcher()
    enter(node)
    from course_utils.ranks.engine import engine  # starts MPI

    engine.main(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
