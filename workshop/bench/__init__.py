"""Measurements that can be repeated anywhere: `course bench` lists them, `course bench NAME` runs one.

A bench is a module here with a function `run(runs) -> list[Row]`. What is compared is measured by turns in one run,
A B A B …, and given as the median of the ratios, so that a machine that slows down half-way slows both.
"""

BENCHES: dict[str, str] = {
    "lab": "how long make lab takes until it prints JupyterLab's address, in an existing environment",
    "cluster": "how long ranks take to start, to be taken over and to stop, compared with a bare mpiexec",
    "starts": "whether ranks start and stop many times in a row without failing or leaving anything behind",
    "faults": "how long a mistake on the ranks takes to be reported, and how long until the ranks work again",
    "hangs": "which mistakes are reported, with what cause, line and delay, and that no correct program is",
    "grader": "which wrong answers the checks reject and name, and whether they accept every right one",
    "classroom": "how long a teacher waits for the marks of thirty submissions, lesson by lesson",
    "checks": "how long a learner waits for a verdict on right, wrong and hanging answers",
    "allreduce": "every all-reduce by vector size, compared with MPI, gloo, memcpy and the predicted time",
    "vgg": "VGG-11 on 4 nodes: stages of a step, bytes and CPU (--figures draws the figures of the CS744 report)",
    "server": "a parameter server: bytes on its link, staleness, and seconds and epochs with a straggler",
    "overlap": "how much communication the backward pass hides, compared with the least possible and with torch's DDP",
    "pipeline": "whether every schedule equals one process and idles as its formula predicts, in fifty runs of each",
    "sharded": "whether ZeRO 1 to 3, meshes and checkpoints equal one process, what they keep and send, in fifty runs",
    "experts": "whether experts on four ranks equal one process, their bytes, and how much the busiest has to do",
    "context": "whether attention over one text on four ranks equals one process, its bytes and its balance",
    "inference": "whether answers over four ranks equal one process, and what a token, a cache and a guess cost",
    "recovery": "what a killed replica costs if the others go on, compared with a restart of all",
    "memory": "what training keeps on each rank, calculated and counted, and published runs against the planner",
    "profiling": "how much faster five slow programs can be made, and what the profiler itself costs",
    "strategy": "predicted and measured steps of strategies that were searched for, and how fast the search is",
    "virtual": "how long 256 and 1,024 virtual ranks take, and whether times and numbers match those of real ranks",
    "network": "how close gloo and a ring come to the rate of emulated links, and the time of a round trip",
}
"""Name and subject of every bench; the module has the same name."""
