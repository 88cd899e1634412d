"""Count the bytes of tensors that are made while something runs: now, and at most, each storage once.

Lesson 9's counter sees what is *saved*. This one also sees what exists during one operation only, as all scores do.
"""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Allocated(TorchDispatchMode):
    """Counts storages that operations make inside the `with`, until each is gone.

    Attributes:
        now, most: bytes, at the moment and at most.
        largest: bytes of the largest storage.
        multiplied: floating-point operations of matrix products, a product and a sum being two.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = self.largest = self.multiplied = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Do the operation, and count what it has made."""
        before = {
            tensor.untyped_storage()._cdata
            for tensor in tree_leaves((args, kwargs))
            if isinstance(tensor, torch.Tensor)
        }
        made = function(*args, **(kwargs or {}))
        if function in (torch.ops.aten.bmm.default, torch.ops.aten.mm.default):
            self.multiplied += 2 * made.numel() * args[0].shape[-1]
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self._count(tensor.untyped_storage(), before)
        return made

    def _count(self, storage: torch.UntypedStorage, before: set[int]) -> None:
        if storage._cdata in before or storage._cdata in self._known:
            return
        nbytes = storage.nbytes()
        self._known.add(storage._cdata)
        self.now += nbytes
        self.most, self.largest = max(self.most, self.now), max(self.largest, nbytes)
        weakref.finalize(storage, self._gone, storage._cdata, nbytes).atexit = False

    def _gone(self, address: int, nbytes: int) -> None:
        self._known.discard(address)
        self.now -= nbytes
