"""Refused with: Is there one loss for each step, the one with a small last batch too?"""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.lessons.data_parallel.training import Sgd
from course_utils.lessons.hardware.photos import SHRUNK, decode
from course_utils.lessons.profiling.slow.input_pipeline import BATCH


def speed_up_1(paths, labels, epochs=4, device="cpu"):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * SHRUNK * SHRUNK, 10)).to(device)
    optimizer = Sgd(model.parameters(), rate=0.01)
    known = {path: decode(path.read_bytes()) for path in paths}
    losses = []
    for _ in range(epochs):
        for start in range(0, len(paths) - BATCH + 1, BATCH):
            photos = [known[path] for path in paths[start : start + BATCH]]
            x, y = torch.stack(photos).to(device), labels[start : start + BATCH].to(device)
            loss = cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    return torch.stack(losses).tolist()
