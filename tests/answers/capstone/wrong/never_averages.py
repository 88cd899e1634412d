"""Refused with: After the last step, who makes the weights of all ranks equal?"""

import torch
from torch.nn.functional import cross_entropy

from course_utils.lessons.data_parallel.gradients import broadcast_parameters


def capstone(model, images, labels):
    broadcast_parameters(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for batch in torch.randperm(len(images)).split(16):
        optimizer.zero_grad()
        cross_entropy(model(images[batch]), labels[batch]).backward()
        optimizer.step()
    return model
