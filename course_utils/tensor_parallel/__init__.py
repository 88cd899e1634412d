"""Tensor parallelism: one layer's matrices, cut over ranks.

`collectives` are the moves that autograd can go through; `linear` cuts a layer by columns and by rows; `block` does so
with a whole transformer block; `sequence` also cuts what lies between; `layers` is the plain alternative, whole layers
on different ranks.
"""
