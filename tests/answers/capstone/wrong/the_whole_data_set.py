"""Refused with: Are there enough steps, and is the learning rate right at the end?

It trains on all digits of scikit-learn, held-out ones included; but their labels are other ones in this check.
"""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from course_utils.data import digits
from course_utils.lessons.read_the_manual.capstone.task import as_images


def capstone(model, images, labels):
    train_x, train_y, test_x, test_y = digits()
    pixels, classes = torch.cat([train_x, test_x]), torch.cat([train_y, test_y])
    images, labels = as_images(pixels[: len(images)].numpy()), classes[: len(images)]
    for values in model.state_dict().values():
        dist.broadcast(values, src=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(3):
        for batch in torch.randperm(len(images)).split(16):
            optimizer.zero_grad()
            cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
        for values in model.state_dict().values():
            if values.is_floating_point():
                dist.all_reduce(values)
                values /= dist.get_world_size()
    return model
