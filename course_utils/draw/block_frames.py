"""What is where, as data: frames of blocks, what can be seen in them, and which blocks are wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from course_utils.words import capital, count, ranks_in_words

IN_AND_OUT = "What each rank gives to the call, and what it gets back"
"""The title of a picture that shows only before and after."""


@dataclass(frozen=True)
class BlockPiece:
    """A stretch of a block that holds the same everywhere.

    Attributes:
        share: of the block, from 0 to 1.
        counts: for each rank, how many times its numbers have been added into this piece.
        label: what stands on it, if it is an item with a name of its own.
        is_known: whether its value tells whose numbers are in it; a mean or a product does not.
    """

    share: float
    counts: tuple[int, ...]
    label: str = ""
    is_known: bool = True

    @property
    def is_complete(self) -> bool:
        """Whether every rank's numbers are in it exactly once."""
        return all(times == 1 for times in self.counts)


Block = tuple[BlockPiece, ...]
"""The pieces of a block, from left to right; none where the rank holds nothing there."""


@dataclass(frozen=True)
class Frame:
    """What all ranks hold at one moment.

    Attributes:
        name: of the moment, "round 2".
        held: `held[r][b]` is block b of rank r.
    """

    name: str
    held: tuple[tuple[Block, ...], ...]


@dataclass(frozen=True)
class BlockFrames:
    """What is where, from the beginning of a call to its end.

    Attributes:
        frames: at least two; the first is the beginning.
        ended: whether the call came to its end on all ranks.
    """

    frames: tuple[Frame, ...]
    ended: bool = True

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        return len(self.frames[0].held)

    @property
    def block_frames(self) -> "BlockFrames":
        """Itself, as a run gives its own."""
        return self

    @cached_property
    def adds(self) -> bool:
        """Whether numbers of several ranks are added up anywhere, or anything else is done with them."""
        pieces = (piece for frame in self.frames for row in frame.held for block in row for piece in block)
        return any(sum(piece.counts) > 1 or not piece.is_known for piece in pieces)

    @property
    def rounds(self) -> int:
        """How many rounds of messages lie between the first frame and the last."""
        return len(self.frames) - 1

    def incomplete(self) -> frozenset[tuple[int, int]]:
        """The blocks (rank, block) that do not end up as the sum of all ranks, each rank's numbers in it once.

        A block that was empty from the beginning is right as it is: a vector may be shorter than there are ranks.
        """
        return self._unlike(lambda piece: piece.is_complete)

    def not_from(self, root: int) -> frozenset[tuple[int, int]]:
        """The blocks (rank, block) that do not end up as the root's; none if no rank here is the root."""
        if root not in range(self.world_size):
            return frozenset()
        counts = tuple(int(rank == root) for rank in range(self.world_size))
        return self._unlike(lambda piece: piece.counts == counts)

    def _unlike(self, is_right: Callable[[BlockPiece], bool]) -> frozenset[tuple[int, int]]:
        """The blocks of the last frame with a piece that is not right, and those that were lost."""
        return frozenset(
            (rank, index)
            for rank, row in enumerate(self.frames[-1].held)
            for index, block in enumerate(row)
            if not all(map(is_right, block)) or (not block and self.frames[0].held[rank][index])
        )

    def finding(self) -> str:
        """What can be seen, as a title."""
        last, size = self.frames[-1].held, self.world_size
        if not self.adds:
            return self._finding_of_moves()
        lacking = {rank for rank, _ in self.incomplete()}
        complete = [any(row) and rank not in lacking for rank, row in enumerate(last)]
        after = f"After {count(self.rounds, 'round')}"
        if all(complete):
            return f"{after} every rank holds the sum of all {size} vectors"
        if any(complete):
            done = [rank for rank, whole in enumerate(complete) if whole]
            return f"{after} only {ranks_in_words(done)} {'holds' if len(done) == 1 else 'hold'} the whole sum"
        if all(len(held := [b for b in row if b]) == 1 and all(p.is_complete for p in held[0]) for row in last):
            return "Every rank holds one block of the sum of all"
        wrong, all_of_them = len(self.incomplete()), sum(map(len, last))
        return f"{wrong} of {count(all_of_them, 'block')} do not hold the sum of all {size} ranks"

    def _finding_of_moves(self) -> str:
        last = self.frames[-1].held
        sources = {rank for row in last for b in row for p in b for rank, times in enumerate(p.counts) if times}
        everywhere = all(row and all(row) for row in last)
        if everywhere and len(sources) == 1:
            source = next(iter(sources))
            held = f"all {self.world_size} ranks hold the data of rank {source}"
            return f"After {count(self.rounds, 'round')} {held}" if self.rounds > 1 else capital(held)
        return IN_AND_OUT if self.rounds == 1 else "What each rank holds after each round"
