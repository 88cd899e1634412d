"""Refused with: rank 0 returned nothing, expected the trained VGG-11. What does the function return, on every rank?"""

import torch
from torch.nn.functional import cross_entropy


def capstone(model, images, labels):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for batch in torch.randperm(len(images)).split(16):
        optimizer.zero_grad()
        cross_entropy(model(images[batch]), labels[batch]).backward()
        optimizer.step()
