"""Refused with: Does every measurement have a say?"""


def fit_alpha_beta(nbytes, seconds):
    (n0, t0), *_, (n1, t1) = sorted(zip(nbytes, seconds, strict=True))
    beta = (t1 - t0) / (n1 - n0)
    return t0 - beta * n0, beta
