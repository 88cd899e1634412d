"""Refused with: rank 0 returned an object of type float, expected the trained VGG-11"""

from torch.nn.functional import cross_entropy


def capstone(model, images, labels):
    loss = cross_entropy(model(images[:16]), labels[:16])
    loss.backward()
    return loss.item()
