"""Ranks on a cluster's nodes: a batch job, and beside each of its ranks a node agent.

ipyparallel's own `SlurmEngineSetLauncher` submits a job of engines as well, but nothing beside an engine sees that it
hangs or ends it then, and it says neither what a job is waiting for nor why it is over.
"""
