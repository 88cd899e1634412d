"""The textbook's closed form: slope from weighted means, in plain Python."""


def fit_alpha_beta(nbytes, seconds):
    weights = [1 / t**2 for t in seconds]
    total = sum(weights)
    mean_n = sum(w * n for w, n in zip(weights, nbytes, strict=True)) / total
    mean_t = sum(w * t for w, t in zip(weights, seconds, strict=True)) / total
    above = sum(w * (n - mean_n) * (t - mean_t) for w, n, t in zip(weights, nbytes, seconds, strict=True))
    below = sum(w * (n - mean_n) ** 2 for w, n in zip(weights, nbytes, strict=True))
    beta = above / below
    return mean_t - beta * mean_n, beta
