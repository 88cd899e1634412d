"""Two paragraphs of TensorFlow's guide that open and close SURF's course, each word of them with the lesson that
taught it.

Quoted from "Distributed training with TensorFlow", <https://www.tensorflow.org/guide/distributed_training>, licensed
under CC BY 4.0, in the older wording that SURF's slides show (van Leeuwen, PRACE course on high performance machine
learning, 2022). It is from about 2020: the guide then had `tf.distribute.experimental.MultiWorkerMirroredStrategy`, the
name of before TensorFlow 2.4. The guide of today says the same with other names, `CommunicationImplementation.RING`.
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
            "an object that decides who computes what and who keeps what",
            "how long a step takes with each complete strategy, predicted and measured",
        ),
        Term(
            "Synchronous",
            6,
            "all ranks wait for all others in every step",
            "that four ranks have the same losses as one process",
        ),
        Term("asynchronous", 8, "no worker waits for the others", "how stale the gradients of seven workers are"),
        Term(
            "data parallelism",
            6,
            "each rank has the whole model and a share of each batch",
            "how long a step of VGG-11 takes on one rank and on four",
        ),
        Term(
            "workers",
            7,
            "processes that train; with one GPU each, they are the ranks",
            "the speed-up from one to four, strong and weak",
        ),
        Term(
            "slices of input data",
            6,
            "shards: the examples of each rank",
            "which batches a rank gets with `set_epoch` and without it",
        ),
        Term(
            "in sync", 6, "all in the same step, so they are as slow as the slowest", "who waits when one rank is late"
        ),
        Term(
            "aggregating gradients",
            6,
            "combining them; the word does not say whether by a sum or a mean",
            "what happens to a step if both rules apply",
        ),
        Term(
            "at each step",
            8,
            "the alternative is now and then, as in local SGD",
            "bytes and accuracy with 1 to 64 steps between averages",
        ),
        Term(
            "updating variables asynchronously",
            8,
            "the weights change as soon as a gradient arrives",
            "the largest learning rate that stale gradients allow",
        ),
        Term(
            "all-reduce",
            5,
            "all ranks contribute, and all get the sum or the mean",
            "the rounds, bytes and seconds of six algorithms",
        ),
        Term("parameter server", 8, "one process keeps the weights", "how its link fills up, compared with a ring"),
    ),
)

RING_OR_NCCL = Passage(
    "[MultiWorker][Mirrored]Strategy currently allows you to choose between two different implementations of "
    "[collective ops]. CollectiveCommunication.RING implements [ring-based collectives] using [gRPC] as the "
    "[communication layer]. CollectiveCommunication.NCCL uses Nvidia's [NCCL] to implement collectives.",
    (
        Term(
            "MultiWorker",
            13,
            "processes on several nodes",
            "that a training run started in three ways has the same loss",
        ),
        Term(
            "Mirrored",
            6,
            "replicas: copies that are kept equal",
            "replicas that started out different and stayed different",
        ),
        Term(
            "collective ops",
            4,
            "calls that all ranks make together",
            "the rounds of a broadcast, plain and with doubling",
        ),
        Term(
            "ring-based collectives",
            5,
            "collectives whose pieces travel around a ring",
            "what each of P ranks in a ring sends",
        ),
        Term("gRPC", None, "calls from process to process, over TCP; this course's ranks use MPI and gloo"),
        Term("communication layer", 4, "the software that carries the bytes", "α and β of a message"),
        Term(
            "NCCL", 13, "NVIDIA's collectives between GPUs", "the bus bandwidth of NCCL, or of gloo if there is no GPU"
        ),
    ),
)

PASSAGES = (SYNC_AND_ASYNC, RING_OR_NCCL)
"""The first one and the second one."""
