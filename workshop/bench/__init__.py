"""Measurements that can be repeated anywhere: `course bench` lists them, `course bench NAME` runs one.

A bench is a module here with a function `run(runs) -> list[Row]`. What is compared is measured by turns in one run,
A B A B …, and given as the median of the ratios, so that a machine that slows down half-way slows both.
"""

BENCHES: dict[str, str] = {
    "lab": "how long make lab takes to say where JupyterLab is, on an environment that is there",
    "cluster": "starting ranks, taking them over and stopping them, against raw mpiexec",
    "starts": "starting and stopping ranks again and again: failures, and what is left",
    "faults": "what a mistake on the ranks costs: seconds to the report, and until they work again",
    "hangs": "programs with people's mistakes: which are told, where, why and how soon; and no correct one",
    "grader": "what the checks reject, name and accept: people's answers, and mutants of the library's",
    "classroom": "how long a teacher waits for a class's marks: thirty submissions of each lesson",
    "checks": "how long a learner waits for a verdict: right answers, wrong ones, and those that hang",
    "allreduce": "every all-reduce over the vector's size: against MPI's, gloo, memcpy, and against its prediction",
    "vgg": "VGG-11 data-parallel on 4 nodes: stages of a step, bytes, CPU; --figures draws the CS744 report again",
    "server": "a parameter server's link, staleness, and who waits for a straggler: seconds, epochs, bytes",
    "overlap": "communication hidden behind the backward pass, against the least possible and against torch's DDP",
    "pipeline": "pipeline schedules: equal to one process, idle as the formulas say, fifty clean runs of each",
    "sharded": "ZeRO 1 to 3, meshes and checkpoints: equal to one process, bytes kept and sent, fifty clean runs",
    "experts": "experts on four ranks: equal to one process, bytes, how crowded the busiest is, the all-to-all's time",
    "context": "one text on four ranks: equal to one process, bytes, imbalance of the work, exposed messages",
    "memory": "what training keeps on every rank, computed against counted; published runs against the planner",
    "profiling": "five slow programs and how much faster they can be; exposed communication from traces; the profiler",
    "strategy": "strategies that are searched for: predicted against measured steps, rates of the search, the program",
    "virtual": "virtual ranks: seconds for 256 and 1,024 of them, their time against real nodes, numbers equal to real",
    "network": "nodes behind links: gloo and a ring against the line rate, gather-scatter, round trips",
}
"""Name and subject of every bench; the module has the same name."""
