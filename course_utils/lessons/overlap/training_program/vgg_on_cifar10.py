"""Train VGG-11 on any number of processes, on CIFAR-10 or on pictures of your own.

    torchrun --standalone --nproc-per-node 4 train.py

With --data FOLDER, yours are in FOLDER/train/CLASS_NAME and FOLDER/test/CLASS_NAME.
"""

import argparse
import gc
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset
from torchvision.datasets import CIFAR10, ImageFolder
from torchvision.transforms import v2

BATCH, RATE = 64, 0.01  # images in a step of all processes together; learning rate


def load_images(folder):
    """Return the images for training and those for testing."""
    to_numbers = v2.ToDtype(torch.get_default_dtype(), scale=True)  # from 0 to 1
    centred = v2.Normalize(mean=[0.5] * 3, std=[0.25] * 3)
    prepare = v2.Compose([v2.ToImage(), v2.Resize((32, 32)), to_numbers, centred])
    if (folder / "train").exists():
        return [ImageFolder(folder / part, prepare) for part in ("train", "test")]
    if os.environ["LOCAL_RANK"] == "0":  # one process on each machine downloads
        CIFAR10(folder, download=True)
    dist.barrier()
    return [CIFAR10(folder, train, prepare) for train in (True, False)]


def vgg11(width, classes):
    """Return the network; a width of 0.25 has a quarter of its channels."""
    layers, inputs = [], 3
    for size in (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0):  # 0 is a pool
        if size == 0:
            layers.append(nn.MaxPool2d(2))
            continue
        outputs = int(width * size)
        layers.append(nn.Conv2d(inputs, outputs, kernel_size=3, padding=1))
        layers += [nn.GroupNorm(4, outputs), nn.ReLU()]
        inputs = outputs
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs, classes))


def train(options, device):
    """Train; rank 0 prints the progress and saves a checkpoint."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    images, tests = load_images(options.data)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    chosen = Subset(images, order[: options.images].tolist())
    sampler = DistributedSampler(chosen, drop_last=True)  # each rank gets its share
    batches = DataLoader(chosen, BATCH // world_size, sampler=sampler, drop_last=True)
    own_tests = DataLoader(Subset(tests, range(rank, len(tests), world_size)), 500)

    if rank == 0:
        print(f"{len(chosen)} images, processes: {world_size}, device: {device}")
    torch.manual_seed(0)
    model = vgg11(options.width, len(images.classes)).to(device)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), RATE, momentum=0.9)
    history = []
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)  # a new order of the images, the same on all ranks
        sums = torch.zeros(2, device=device)
        for x, y in batches:
            loss = cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()  # DDP averages the gradients meanwhile
            optimizer.step()
            sums[0] += loss.detach() / len(batches) / world_size
        with torch.no_grad():
            for x, y in own_tests:
                right = model(x.to(device)).argmax(dim=1) == y.to(device)
                sums[1] += right.sum() / len(tests)
        dist.all_reduce(sums)  # mean loss, and accuracy on all test images
        history.append(sums.tolist())
        if rank == 0:
            progress = f"loss {sums[0]:.3f}, accuracy {sums[1]:.1%}"
            print(f"epoch {epoch + 1}: {progress}", flush=True)
    if rank == 0:
        trained = {"model": model.module.state_dict(), "history": history}
        torch.save(trained, options.save)


def main():
    """Join the other processes, train, and leave."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default="data")
    parser.add_argument("--images", type=int, default=50_000, help="for training")
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--double", action="store_true", help="64-bit numbers")
    parser.add_argument("--save", type=Path, default="vgg11.pt")
    options = parser.parse_args()
    torch.set_default_dtype(torch.float64 if options.double else torch.float32)
    on_gpus = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    if on_gpus:  # there is one for each process
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if on_gpus else "gloo")
    train(options, torch.device("cuda" if on_gpus else "cpu"))
    gc.collect()  # frees the DDP model; torch may crash if it outlives its group
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
