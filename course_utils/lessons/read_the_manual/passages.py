"""Two paragraphs of TensorFlow's guide that open and close SURF's course, each word of them with the lesson that
taught it.

Quoted from "Distributed training with TensorFlow", <https://www.tensorflow.org/guide/distributed_training>, licensed
under CC BY 4.0, in the wording of 2022 that SURF's slides show (van Leeuwen, PRACE course on high performance machine
learning, 2022). The guide of today says the same with other names: `CommunicationImplementation.RING`.
"""

import re
from dataclasses import dataclass

_TERM = re.compile(r"\[([^\]]+)\]")


@dataclass(frozen=True)
class Term:
    """A word of a paragraph.

    Attributes:
        words: as they stand there.
        lesson: the number of the lesson that taught it; None where no lesson did.
        means: what it is, in the course's words.
        measured: what that lesson measured of it.
    """

    words: str
    lesson: int | None
    means: str
    measured: str = ""


@dataclass(frozen=True)
class Passage:
    """A paragraph of somebody else's manual.

    Attributes:
        marked: the quotation, each word that is looked at between square brackets.
        terms: those words, in their order.
    """

    marked: str
    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        if _TERM.findall(self.marked) != [term.words for term in self.terms]:
            raise ValueError("the words between brackets are not those of the terms")

    @property
    def text(self) -> str:
        """The quotation as it is."""
        return _TERM.sub(r"\1", self.marked)

    @property
    def pieces(self) -> list[tuple[str, Term | None]]:
        """The quotation cut into what is a term and what is not, in order."""
        terms = iter(self.terms)
        cut = _TERM.split(self.marked)
        return [(text, next(terms) if index % 2 else None) for index, text in enumerate(cut) if text]


SYNC_AND_ASYNC = Passage(
    "[tf.distribute.Strategy] intends to cover a number of use cases along different axes … [Synchronous] vs "
    "[asynchronous] training: These are two common ways of distributing training with [data parallelism]. In sync "
    "training, all [workers] train over different [slices of input data] [in sync], and [aggregating gradients] "
    "[at each step]. In async training, all workers are independently training over the input data and "
    "[updating variables asynchronously]. Typically sync training is supported via [all-reduce] and async through "
    "[parameter server] architecture.",
    (
        Term(
            "tf.distribute.Strategy",
            12,
            "who computes what and who keeps what, as one object that can be exchanged",
            "the step time of whole strategies, predicted and run",
        ),
        Term("Synchronous", 6, "all wait for all, in every step", "four ranks and one process: the same losses"),
        Term("asynchronous", 8, "nobody waits", "how old the gradients are that seven workers bring"),
        Term(
            "data parallelism",
            6,
            "everybody has the whole model and a share of each batch",
            "a step of VGG-11, on one rank and on four",
        ),
        Term("workers", 7, "ranks that train", "speed-up from one to four, strong and weak"),
        Term(
            "slices of input data",
            6,
            "shards: each rank's own examples",
            "the different batches of a rank, `set_epoch` told and forgotten",
        ),
        Term("in sync", 6, "in the same step, and so as slow as the slowest", "who waits when one rank comes late"),
        Term(
            "aggregating gradients",
            6,
            "adding up; it does not say: sum or mean",
            "what both rules at once do to a step",
        ),
        Term("at each step", 8, "or now and then: local SGD", "bytes and accuracy with 1 to 64 steps between means"),
        Term(
            "updating variables asynchronously",
            8,
            "weights change as soon as one gradient comes",
            "the largest learning rate that old gradients allow",
        ),
        Term("all-reduce", 5, "everybody adds, everybody has the sum", "rounds, bytes and seconds of six algorithms"),
        Term("parameter server", 8, "one process keeps the weights", "how its link fills up, beside a ring"),
    ),
)

RING_OR_NCCL = Passage(
    "[MultiWorker][Mirrored]Strategy currently allows you to choose between two different implementations of "
    "[collective ops]. CollectiveCommunication.RING implements [ring-based collectives] using [gRPC] as the "
    "[communication layer]. CollectiveCommunication.NCCL uses Nvidia's [NCCL] to implement collectives.",
    (
        Term("MultiWorker", 13, "processes on several nodes", "one training started in three ways: the same loss"),
        Term("Mirrored", 6, "replicas: copies that are kept equal", "replicas that began apart, and stayed apart"),
        Term(
            "collective ops", 4, "calls that all ranks make together", "the rounds of a broadcast, plain and doubling"
        ),
        Term("ring-based collectives", 5, "pieces that go round", "what each rank of a ring sends, of any P"),
        Term("gRPC", None, "calls from process to process, over TCP; this course's ranks use MPI and gloo"),
        Term("communication layer", 4, "who carries the bytes", "α and β of a message"),
        Term("NCCL", 13, "NVIDIA's collectives between GPUs", "bus bandwidth; where there is no GPU, gloo's"),
    ),
)

PASSAGES = (SYNC_AND_ASYNC, RING_OR_NCCL)
"""The first one and the second one."""
