"""What is trained, and how: one class, from which the command line is made."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields

FIXED = ("batch_size", "rate", "momentum", "hidden", "dropout", "seed")
"""Settings that must be the same when a training goes on; another would make it another training."""


@dataclass(frozen=True)
class Settings:
    """What is trained, and how. On the command line each has a switch of its name: `--batch-size 64`, `--bf16`."""

    folder: str
    """Of the checkpoint; every node that may get rank 0 sees it."""
    epochs: int = 4
    """Passes over the training images, in all."""
    batch_size: int = 64
    """The global batch: the sum over all ranks."""
    rate: float = 0.05
    """The learning rate."""
    momentum: float = 0.9
    """Of SGD; its velocities are what a checkpoint without the optimizer would lose."""
    hidden: int = 64
    """The width of both hidden layers."""
    dropout: float = 0.0
    """The share of hidden units left out in training; above 0, every rank draws its own, from its own random state."""
    seed: int = 0
    """Of the first weights and of the order of the images."""
    bf16: bool = False
    """Multiply in bfloat16 (autocast); weights, gradients and the optimizer stay in float32."""
    compile: bool = False
    """Let torch.compile make kernels for the network first."""
    save_every: int = 20
    """Steps between two checkpoints."""
    pause: float = 0.0
    """Seconds that every step sleeps, so that a demonstration lasts long enough to be interrupted."""
    die_at: int = -1
    """After this step, and before a checkpoint, the last rank kills itself, in the first try only; −1 for never."""


def settings_from(arguments: Sequence[str]) -> Settings:
    """The settings that a command line asks for; its `--help` is made of theirs."""
    parser = argparse.ArgumentParser(description="Train on handwritten digits; started again, it goes on.")
    for field in fields(Settings):
        switch = f"--{field.name.replace('_', '-')}"
        if field.type is bool:
            parser.add_argument(switch, action="store_true")
        else:
            default = {"required": True} if field.name == "folder" else {"default": field.default}
            parser.add_argument(switch, type=field.type, **default)
    return Settings(**vars(parser.parse_args(arguments)))
