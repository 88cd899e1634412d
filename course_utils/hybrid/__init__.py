"""Mixtures of data, tensor and pipeline parallelism on a mesh of ranks (lesson 11)."""
