"""The report's figures 4 to 11 and tables 1 to 3, drawn from runs; published numbers stand beside them, hatched.

Each function takes runs of one setting and gives back a picture. Several runs of the same way count together. The
report gives no numbers with its figures 4 to 9: what its tables say stands beside figures 4, 10 and 11.
"""

import statistics
from collections.abc import Sequence

from matplotlib.figure import Figure

from course_utils import draw
from course_utils.errors import CourseError
from course_utils.lessons.data_parallel import published_numbers, report_sentences
from course_utils.lessons.data_parallel.pictures import NodePanel, node_bars
from course_utils.lessons.data_parallel.report_sentences import DDP, EACH, FLAT, GATHER, ONE_PROCESS, OVERLAPPED, named
from course_utils.lessons.data_parallel.training_run import TrainingRun, epoch, pooled
from course_utils.measuring import Measured
from course_utils.words import bytes_text, count, number_text, percent

HERE = "this machine"
WAYS_IN_ORDER = (ONE_PROCESS, GATHER, EACH, FLAT, OVERLAPPED, DDP)
MEGA = 1e6


def by_way(runs: Sequence[TrainingRun]) -> dict[str, list[TrainingRun]]:
    """The runs on the most ranks, and those of one process, way by way in the order of the report's tasks."""
    most = max((run.world_size for run in runs), default=0)
    chosen: dict[str, list[TrainingRun]] = {}
    for run in runs:
        if run.world_size == most or run.way == ONE_PROCESS:
            chosen.setdefault(run.way, []).append(run)
    return {method: chosen[method] for method in (*WAYS_IN_ORDER, *chosen) if method in chosen}


def parallel(runs: Sequence[TrainingRun], with_nodes: bool = False) -> dict[str, list[TrainingRun]]:
    """The same without one process.

    Raises:
        CourseError: there is none, or bytes are asked for and no run had links.
    """
    ways = {method: each for method, each in by_way(runs).items() if method != ONE_PROCESS}
    if not ways:
        raise CourseError('No runs of several ranks yet: `train_way(ranks, "DDP")` makes one.')
    if with_nodes:
        ways = {method: own for method, each in ways.items() if (own := [run for run in each if run.sent])}
    if not ways:
        raise CourseError('None of these runs had links: `course.start(4, link="200 Mbit/s")` gives each rank one.')
    return ways


def by_workers(runs: Sequence[TrainingRun]) -> dict[int, list[TrainingRun]]:
    """DDP's runs by the number of ranks; one process stands for one worker.

    Raises:
        CourseError: there are none.
    """
    chosen: dict[int, list[TrainingRun]] = {}
    for run in runs:
        if run.way in (ONE_PROCESS, DDP):
            chosen.setdefault(run.world_size, []).append(run)
    if not chosen:
        raise CourseError('No runs of DDP yet: `train_way(ranks, "DDP", world_size=2)` makes one with two workers.')
    return dict(sorted(chosen.items()))


def setting(run: TrainingRun) -> str:
    """What the runs have in common, in words."""
    where = f"links of {run.rates[0] / MEGA:g} Mbit/s" if run.rates else "no links, memory shared"
    model = f"VGG-11 with {bytes_text(run.gradient_bytes)} of gradients"
    return f"{model}, {run.images} images a step, {where}, {count(run.cores, 'core')}."


def total_time(runs: Sequence[TrainingRun]) -> Figure:
    """Figure 4: the training time of every task, as seconds for an epoch."""
    ways = by_way(runs)
    ours = {named(method): epoch(each) for method, each in ways.items()}
    theirs = {
        f"{count(workers, 'worker')} (table 1)": Measured((max(published_numbers.EPOCH_SECONDS[workers]),))
        for workers in (1, 4)
    }
    found = report_sentences.epoch_finding({method: epoch(each).median for method, each in ways.items()})
    groups = {HERE: ours, published_numbers.REPORT: theirs}
    says = setting(runs[-1])
    if not all(seconds.calm for seconds in ours.values()):
        says += " Equal steps took unequal times: something else used this machine."
    return draw.measured_bars(groups, found, says, [published_numbers.REPORT], "time for 50,000 images")


def backward_split(runs: Sequence[TrainingRun]) -> Figure:
    """Figure 5: backward pass and communication, where one comes after the other (tasks 2a and 2b)."""
    ways = {method: each for method, each in parallel(runs).items() if method in (GATHER, EACH, FLAT)}
    if not ways:
        raise CourseError('No runs of task 2 yet: `train_way(ranks, "gather-scatter")`, `"all-reduce, each"`.')
    bars = {named(method): medians(each, ("backward", "communication")) for method, each in ways.items()}
    shares = {method: bars[named(method)]["communication"] / sum(bars[named(method)].values()) for method in ways}
    return draw.stacked_bars(bars, report_sentences.split_finding(shares))


def stages(runs: Sequence[TrainingRun]) -> Figure:
    """Figure 6: a step of every task, cut into its stages."""
    ways = by_way(runs)
    bars = {named(method): medians(each) for method, each in ways.items()}
    return draw.stacked_bars(bars, report_sentences.order_finding(steps_of(ways), one_process=ONE_PROCESS in ways))


def steps_of(ways: dict[str, list[TrainingRun]]) -> dict[str, float]:
    """Way → median seconds of a step; without one process, unless that is all there is."""
    return {method: pooled(each).median for method, each in ways.items() if method != ONE_PROCESS or len(ways) == 1}


def forward_sentence(runs: Sequence[TrainingRun]) -> str:
    """Figure 6's other finding: the forward pass on several ranks against that of one process; "" without both."""
    ways = by_way(runs)
    several = [each for method, each in ways.items() if method != ONE_PROCESS]
    if ONE_PROCESS not in ways or not several:
        return ""
    fast = statistics.median(pooled(each, "forward").median for each in several)
    times = pooled(ways[ONE_PROCESS], "forward").median / fast
    return report_sentences.forward_finding(
        times, published_numbers.FORWARD_TIMES, several[0][0].world_size, runs[-1].cores
    )


def slowed_sentence(runs: Sequence[TrainingRun]) -> str:
    """DDP's backward pass against that of the ways that send afterwards; "" without both."""
    ways = by_way(runs)
    after = [run for method in (GATHER, EACH, FLAT) for run in ways.get(method, [])]
    if DDP not in ways or not after or after[0].world_size == 1:
        return ""
    times = pooled(ways[DDP], "backward").median / pooled(after, "backward").median
    return report_sentences.slowed_finding(DDP, times, after[0].world_size, runs[-1].cores)


def send_sentence(runs: Sequence[TrainingRun]) -> str:
    """Figure 11's other finding: bytes in a second, against the report's text; "" where runs are missing."""
    ways = parallel(runs, with_nodes=True)
    rates = {method: statistics.fmean(sent_per_second(each)) for method, each in ways.items()}
    return report_sentences.rates_finding(rates, {method: gradients_per_step(each) for method, each in ways.items()})


def medians(runs: Sequence[TrainingRun], parts: Sequence[str] | None = None) -> dict[str, float]:
    """Part → the median of its seconds in all steps."""
    return {part: pooled(runs, part).median for part in parts or runs[0].parts}


def over_time(run: TrainingRun) -> Figure:
    """Figures 7, 8, 9: bytes and CPU of every node while a way is at work.

    Raises:
        CourseError: the run had no links.
    """
    if run.series is None:
        parallel([run], with_nodes=True)
        raise CourseError("This run kept nothing of its time.")
    series = run.series
    title = f"{count(run.steps, 'step')} of {named(run.way)}"
    return draw.traffic(series.seconds, series.sent, series.received, series.cpu, run.rates, title=title)


def mean_cpu(runs: Sequence[TrainingRun]) -> Figure:
    """Figure 10: the CPU that each rank used, user and system."""
    ways = parallel(runs)
    panel = NodePanel(
        HERE, {named(method): cpu_of(each) for method, each in ways.items()}, "percent of one core", per_cent
    )
    use = {method: sum(map(total, panel.groups[named(method)])) for method in ways}
    most = max(use, key=use.__getitem__)
    title = f"{most[:1].upper()}{most[1:]} uses most CPU: its ranks together {percent(use[most] / 100)} of a core"
    workers = ways[most][0].world_size
    theirs = {named(DDP): published_cpu(workers if workers in published_numbers.CPU else 4)}
    beside = NodePanel(published_numbers.REPORT, theirs, "percent of a node's five cores", per_cent, published=True)
    return node_bars([panel, beside], title, setting(runs[-1]))


def mean_send(runs: Sequence[TrainingRun]) -> Figure:
    """Figure 11: what each node sends in a second."""
    ways = parallel(runs, with_nodes=True)
    sent = {method: [node / MEGA for node in sent_per_second(each)] for method, each in ways.items()}
    ours = {named(method): [{"sent": node} for node in nodes] for method, nodes in sent.items()}
    workers = next(iter(ways.values()))[0].world_size
    report = published_numbers.SENT_PER_SECOND.get(workers, published_numbers.SENT_PER_SECOND[4])
    theirs = {named(DDP): [{"sent": node} for node in report]}
    panels = [
        NodePanel(HERE, ours, "MB sent in a second", number_text),
        NodePanel(published_numbers.REPORT, theirs, "MB sent in a second", number_text, published=True),
    ]
    return node_bars(panels, report_sentences.load_finding(sent), setting(runs[-1]))


def time_by_workers(runs: Sequence[TrainingRun]) -> Figure:
    """Table 1: the seconds of an epoch with 1, 2, 3, 4 workers."""
    ours = {workers: epoch(each).median for workers, each in by_workers(runs).items()}
    report = {workers: float(max(nodes)) for workers, nodes in published_numbers.EPOCH_SECONDS.items()}
    title = report_sentences.speed_up_finding(ours, report, runs[-1].cores)
    panels = [
        NodePanel(name, workers_of({workers: [{"time": value}] for workers, value in values.items()}), x, say, public)
        for name, values, public in ((HERE, ours, False), (published_numbers.REPORT, report, True))
        for x, say in (("seconds for 50,000 images", lambda value: f"{value:.0f}"),)
    ]
    return node_bars(panels, title, setting(runs[-1]))


def cpu_by_workers(runs: Sequence[TrainingRun]) -> Figure:
    """Table 2: the CPU that each rank uses with 1, 2, 3, 4 workers."""
    ours = {workers: cpu_of(each) for workers, each in by_workers(runs).items()}
    report = {workers: published_cpu(workers) for workers in published_numbers.CPU}
    first, last = min(ours), max(ours)
    each = [statistics.fmean(map(total, ours[workers])) for workers in (first, last)]
    title = f"A rank uses {each[0]:.0f} % of a core with {count(first, 'worker')}"
    title += f", {each[1]:.0f} % with {last}" if last > first else ""
    panels = [
        NodePanel(HERE, workers_of(ours), "percent of one core", per_cent),
        NodePanel(
            published_numbers.REPORT, workers_of(report), "percent of a node's five cores", per_cent, published=True
        ),
    ]
    return node_bars(panels, title, setting(runs[-1]))


def traffic_by_workers(runs: Sequence[TrainingRun]) -> Figure:
    """Table 3: what each node sends in a second with 2, 3, 4 workers."""
    several = {workers: each for workers, each in by_workers(runs).items() if workers > 1}
    chosen = {workers: own for workers, each in several.items() if (own := [run for run in each if run.sent])}
    if not chosen:
        raise CourseError('No runs of DDP with links yet: `course.start(4, link="200 Mbit/s")`, then train_way.')
    ours = {workers: [{"sent": rate / MEGA} for rate in sent_per_second(each)] for workers, each in chosen.items()}
    report = {
        workers: [{"sent": rate} for rate in nodes] for workers, nodes in published_numbers.SENT_PER_SECOND.items()
    }
    per_step = {workers: gradients_per_step(each) for workers, each in chosen.items()}
    theirs = {workers: published_numbers.gradients_per_step(workers) for workers in report}
    title = (
        f"With {max(chosen)} workers a node sends {max(node['sent'] for node in ours[max(chosen)]):.1f} MB in a second"
    )
    panels = [
        NodePanel(HERE, workers_of(ours), "MB sent in a second", number_text),
        NodePanel(published_numbers.REPORT, workers_of(report), "MB sent in a second", number_text, published=True),
    ]
    return node_bars(panels, title, f"{report_sentences.traffic_finding(per_step, theirs)} {setting(runs[-1])}")


def workers_of(values: dict[int, list[dict[str, float]]]) -> dict[str, list[dict[str, float]]]:
    """The same by "1 worker", "2 workers"."""
    return {count(workers, "worker"): nodes for workers, nodes in values.items()}


def cpu_of(runs: Sequence[TrainingRun]) -> list[dict[str, float]]:
    """For each rank the percent of a core, user and system, in the middle run."""
    return [
        {
            "user": statistics.median(100 * run.user[rank] / run.seconds for run in runs),
            "system": statistics.median(100 * run.system[rank] / run.seconds for run in runs),
        }
        for rank in range(runs[0].world_size)
    ]


def published_cpu(workers: int) -> list[dict[str, float]]:
    """The same in the report, as percent of a node."""
    return [{"user": user, "system": system} for user, system in published_numbers.CPU[workers]]


def sent_per_second(runs: Sequence[TrainingRun]) -> list[float]:
    """For each node the bytes that it sends in a second, in the middle run."""
    return [statistics.median(run.sent[node] / run.seconds for run in runs) for node in range(runs[0].world_size)]


def gradients_per_step(runs: Sequence[TrainingRun]) -> float:
    """How many times the gradient's bytes a node sends in a step, as the mean of the nodes, in the middle run."""
    return statistics.median(statistics.fmean(run.sent) / run.steps / run.gradient_bytes for run in runs)


def total(parts: dict[str, float]) -> float:
    """The sum of a bar's parts."""
    return sum(parts.values())


def per_cent(value: float) -> str:
    """A number of percent: `54%`."""
    return percent(value / 100)
