"""Sorts the places in plain Python."""

import torch


def top_k_with_error_feedback(gradient, error, k):
    whole = gradient + error
    places = sorted(range(len(whole)), key=lambda place: -abs(whole[place].item()))[: min(k, len(whole))]
    indices = torch.tensor(places, dtype=torch.long)
    values = whole[indices].clone()
    whole[indices] = 0
    return indices, values, whole
