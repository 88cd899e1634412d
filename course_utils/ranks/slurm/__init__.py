"""Ranks on a cluster's nodes: a batch job, and beside each of its ranks a node agent."""
