"""One machine: rates and their spread, the roofline, shares, threads, work and depth, packed samples, reading."""

import os
import random
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import course_utils as course
from course_utils.lessons.hardware import (
    data_sheets,
    layer_costs,
    machine_rates,
    packed_samples,
    photos,
    reading_speed,
    step_shares,
    threads,
    work_and_depth,
)
from course_utils.lessons.hardware.pictures import (
    between_bounds,
    chain_and_tree,
    layer_roofline,
    layer_times,
    packed_file,
    roofline,
    rooflines,
    time_by_threads,
)
from course_utils.lessons.hardware.roofline import arithmetic_intensity, roofline_time
from course_utils.lessons.hardware.sentences import (
    MachinesTable,
    batches_text,
    brent_sentence,
    compared,
    epoch_sentence,
    hyperthreads_sentence,
    layers_sentence,
    layers_title,
    machines_table,
    machines_title,
    moved_sentence,
    pooling_sentence,
    reading_sentence,
    shares_sentence,
    small_layers_sentence,
    threads_answer,
    threads_sentence,
    workers_sentence,
)
from course_utils.lessons.hybrid_and_sharded.planner import gpu_clusters
from course_utils.measuring import BUSY, Compared, Measured
from course_utils.vgg import vgg11

WIDTHS = (1, 2, 3, 7, 40)


def test_threads_are_afterwards_as_they_were():
    before = torch.get_num_threads()
    with machine_rates.using_threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_arrays_are_larger_than_the_cache_that_the_system_names(tmp_path):
    for name, size in {"index0": "48K", "index3": "98304K"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "size").write_text(f"{size}\n")
    assert machine_rates.array_bytes(tmp_path) == 2 * 98304 * 1024
    assert machine_rates.array_bytes(tmp_path / "nothing") == 64 << 20


def test_flops_are_those_that_torch_counts():
    from torch.utils.flop_counter import FlopCounterMode

    x = torch.randn(3, 3, 32, 32)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        vgg11(width=0.125)(x)
    counted = 0
    for layer, before, after in passed_through(vgg11(width=0.125), x):
        if layer_costs.kind_of(layer) in ("conv", "linear"):
            flops = arithmetic_intensity(before.shape, layer.weight.shape)[0]
            assert layer_costs.count(layer, before, after)[0] == flops
            counted += flops
    assert counted == counter.get_total_flops()


def passed_through(model, x):
    with torch.no_grad():
        for layer in model:
            y = layer(x)
            yield layer, x, y
            x = y


def test_the_roof_is_the_longer_of_two_times():
    assert roofline_time([(8.0, 1.0)], peak=4.0, bandwidth=1.0) == 2.0
    assert roofline_time([(1.0, 8.0), (8.0, 1.0)], peak=4.0, bandwidth=2.0) == 6.0
    assert roofline_time([], 1.0, 1.0) == 0


def test_every_layer_is_predicted_and_measured_and_drawn():
    timed = layer_costs.time_layers(vgg11(width=0.125), torch.randn(4, 3, 32, 32), 1e11, 1e10, threads=1, repeats=3)
    assert [layer.name for layer in timed[:4]] == ["conv1", "norm1", "relu1", "pool1"] and len(timed) == 30
    for layer in timed:
        assert layer.predicted == pytest.approx(max(layer.flops / 1e11, layer.nbytes / 1e10))
        assert layer.rate == layer.flops / layer.measured.median
    title, left = layers_title(timed, ridge=10.0), sum(layer.flops < 10.0 * layer.nbytes for layer in timed)
    assert 0 < left < 30 and title.startswith(f"{left} of 30 layers")
    picture = layer_roofline(timed, 1e11, 1e10, title)
    for shown in (picture, layer_times(timed, "a title")):
        assert "8 conv layers" in shown.alt_text and "1 linear layer," in shown.alt_text


def layer(name: str, kind: str, flops: int, nbytes: int, predicted: float, seconds: float) -> layer_costs.Layer:
    return layer_costs.Layer(name, kind, flops, nbytes, predicted, Measured((seconds,)))


def test_what_is_said_of_the_layers_is_chosen_from_the_numbers():
    even = [layer("conv1", "conv", 100, 1, 1.0, 1.0), layer("relu1", "relu", 1, 10, 1.0, 1.0)]
    assert layers_sentence(even, 10) == "No layer takes more than 2 times as long as the roof predicts."
    slow = [*even, layer("pool1", "pool", 1, 10, 1.0, 9.0)]
    assert "pool1 took 9.0 times" in layers_sentence(slow, 10)
    assert "cache" in layers_sentence([*even, layer("relu2", "relu", 1, 10, 1.0, 0.5)], 10)
    assert "Winograd" in layers_sentence([*even, layer("conv2", "conv", 100, 1, 1.0, 0.5)], 10)
    restless = layer_costs.Layer("norm1", "norm", 1, 10, 1.0, Measured((1.0, 2.0, 4.0)))
    assert "busy" in layers_sentence([restless], 10) and "busy" not in layers_sentence(slow, 10)
    for other, words in ((0.1, "not the memory"), (1.0, "makes no difference"), (9.0, "suits this machine better")):
        assert words in pooling_sentence(Compared([other], [1.0]))


@pytest.mark.parametrize(
    ("norm", "words", "absent"),
    [(1.0, "9%", "So they"), (5.0, "further from the roof", "closer"), (0.5, "closer to the roof", "further")],
)
def test_the_small_layers_are_compared_with_the_roof(norm, words, absent):
    layers = [layer("conv1", "conv", 100, 1, 10.0, 10.0), layer("norm1", "norm", 1, 10, 1.0, norm)]
    text = small_layers_sentence(layers, calculated=1 / 11, bandwidth=10.0)
    assert words in text and absent not in text
    assert ("20% of the bandwidth" in text) == (norm == 5.0)


def test_a_step_has_three_shares_in_every_iteration():
    timed = step_shares.time_training(vgg11(width=0.125), iterations=3, passes=2, batch=4, threads=1)
    assert timed.images == 8 and len(timed.iterations) == 3
    assert all(list(bar) == ["forward", "backward", "step"] and min(bar.values()) > 0 for bar in timed.bars.values())
    whole = [sum(bar.values()) for bar in timed.bars.values()]
    assert timed.epoch().values == pytest.approx([one * 50_000 / 8 for one in whole])
    calm = step_shares.TimedTraining([step_shares.Iteration(1.0, 2.0, 0.1)] * 3, images=8)
    assert "The backward pass takes the most time, as in the report" in shares_sentence(calm)


def test_published_numbers_are_marked_as_such():
    bars = step_shares.epoch_bars({"CPU": Measured((200.0, 210.0))}, cores=2)
    assert list(bars["this machine"]) == ["2 cores"] and "GPU, GTX 1650 Super" in bars[step_shares.REPORT]
    picture = course.draw.measured_bars(bars, "an epoch", published=[step_shares.REPORT])
    assert "published, not measured here" in picture.alt_text
    slower, faster = ({"CPU": Measured((seconds,))} for seconds in (600.0, 100.0))
    assert "0.5 times as long" in epoch_sentence(slower, 1) and "1 core." in epoch_sentence(slower, 1)
    assert "3 times as long" in epoch_sentence(faster, 8)
    assert " 10 times as fast" in epoch_sentence(faster | {"GPU": Measured((10.0,))}, 8)


def test_the_plateau_is_found_wherever_it_is():
    def times(*seconds: float) -> dict[int, Measured]:
        return {count: Measured((one,)) for count, one in enumerate(seconds, start=1)}

    at_two, nowhere, falling = times(4.0, 2.0, 2.1, 2.0), times(2.0, 2.0, 2.1, 2.0), times(4.0, 2.0, 3.0, 2.4)
    assert [threads.plateau(each) for each in (at_two, nowhere, falling)] == [2, 1, 2]
    assert compared(falling, 2, 3).first_is_faster and compared(at_two, 2, 3).is_tie
    assert "2 threads, one for each core" in threads_sentence(at_two, 2)
    assert "although there are 8 cores" in threads_sentence(at_two, 8)
    assert threads_sentence(nowhere, 2).startswith("No gain, although")
    assert threads_sentence(at_two, 1).startswith("The shortest time was with 2 threads, on 1 core.")
    assert "by a factor of up to 1.5" in threads_sentence(falling, 2)
    assert "With one core" in threads_sentence(times(2.0, 2.0), 1)
    assert [threads_answer(times(4.0, 2.0, 2.0, last), 2) for last in (1.0, 2.1, 3.0)] == ["a", "b", "c"]


@pytest.mark.parametrize("cores", [1, 2, 3, 5, 8, 64])
def test_threads_are_tried_around_the_number_of_cores(cores):
    counts = threads.thread_counts(cores)
    assert counts[0] == 1 and {cores, 2 * cores} <= set(counts) and counts == sorted(set(counts))
    assert len(counts) <= 10


def test_times_by_threads_are_measured_in_rounds():
    before, seen = torch.get_num_threads(), []
    times = threads.time_threads(lambda: seen.append(torch.get_num_threads()), [1, 2], rounds=3)
    assert {count: len(measured.values) for count, measured in times.items()} == {1: 3, 2: 3}
    assert seen == [1, 1, 2, 2] * 3 and torch.get_num_threads() == before
    picture = time_by_threads(times, 2, "a title")
    assert "2 cores allowed" in picture.alt_text


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot bind a process to cores")
def test_the_number_of_threads_to_try_follows_the_allowed_cores():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert threads.thread_counts() == [1, 2]
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 32, 33])
def test_a_sum_has_the_work_and_depth_of_its_form(n):
    for graph, depth in ((work_and_depth.chain_sum(n), n - 1), (work_and_depth.tree_sum(n), work_and_depth.log2_up(n))):
        assert len(graph) == n - 1
        assert work_and_depth.brent_bounds(graph, 10**9)[0] == depth
        assert work_and_depth.brent_bounds(graph, 1)[0] == n - 1


def greedy(needs: dict, processors: int) -> int:
    """Rounds of a schedule in which no processor rests while a task is ready."""
    done, rounds = set(), 0
    while len(done) < len(needs):
        ready = [task for task in needs if task not in done and done.issuperset(needs[task])]
        done |= set(ready[:processors])
        rounds += 1
    return rounds


def test_every_greedy_schedule_keeps_within_the_bounds(seed):
    rng = random.Random(seed)
    for _ in range(50):
        tasks = list(range(rng.randint(1, 25)))
        needs = {task: rng.sample(tasks[:task], rng.randint(0, min(task, 3))) for task in tasks}
        for processors in (1, 2, 3, 8):
            low, high = work_and_depth.brent_bounds(needs, processors)
            assert low <= greedy(needs, processors) <= high, f"seed {seed}"


def test_threads_do_the_tasks_of_a_graph_in_its_order():
    graph = work_and_depth.tree_sum(9)
    alone, four = (work_and_depth.run_graph(graph, workers, 0.01) for workers in (1, 4))
    assert work_and_depth.run_graph({}, 2, 0.01) < four < alone


def test_what_is_said_of_the_bounds_is_chosen_from_the_numbers():
    bounds = {1: (4.0, 6.0), 2: (3.0, 5.0)}
    assert "All 2" in brent_sentence(bounds, {1: 5.0, 2: 4.0})
    assert "upper bound" in brent_sentence(bounds, {1: 5.0, 2: 5.4})
    assert brent_sentence(bounds, {1: 5.0, 2: 6.0}) == f"{BUSY}."
    assert "lower bound" in brent_sentence(bounds, {1: 2.0, 2: 4.0})
    measured = {p: Measured((4.0, 5.0)) for p in bounds}
    assert "min: 1, 2." in between_bounds(measured, bounds, {"min": [1.0, 2.0]}, "title").alt_text


def test_work_and_depth_of_layers_are_those_of_their_sums():
    found = dict(
        (name, (work, depth)) for name, work, depth in layer_costs.work_and_depth(vgg11(), torch.randn(2, 3, 32, 32))
    )
    assert found["conv1"] == (2 * 64 * 32 * 32 * (2 * 27 - 1), 1 + 5)
    assert found["linear"] == (2 * 10 * (2 * 512 - 1), 1 + 9)
    assert found["relu1"] == (2 * 64 * 32 * 32, 1) and found["pool1"] == (2 * 64 * 16 * 16 * 3, 2)
    assert found["norm1"][1] == 5 + 11


def test_a_backward_pass_has_two_products_for_each_of_the_forward_pass():
    model, x = vgg11(), torch.randn(2, 3, 32, 32)
    back = {name: (work, depth) for name, work, depth in layer_costs.work_and_depth(model, x, backward=True)}
    pixels, weights = 2 * 32 * 32, 64 * 3 * 9
    assert back["conv1"] == (weights * (2 * pixels - 1) + x.numel() * (2 * 64 * 9 - 1), 1 + 11)
    assert back["linear"] == (5120 * (2 * 2 - 1) + 2 * 512 * (2 * 10 - 1), 1 + 4)
    forward = {name: work for name, work, _ in layer_costs.work_and_depth(model, x)}
    assert forward.keys() == back.keys()
    for name, (work, _) in back.items():
        if name.startswith("conv"):
            assert 1.9 < work / forward[name] < 2.1


@pytest.fixture
def packed(tmp_path) -> tuple[Path, list[bytes]]:
    """A packed file, and what is in it."""
    contents = [os.urandom(length) for length in (5, 0, 300, 1, 70_000)]
    packed_samples.pack_samples(contents, tmp_path / "packed")
    return tmp_path / "packed", contents


def test_packed_samples_come_back_in_any_order(packed):
    path, contents = packed
    for index in (4, 0, 2, 1, 3, 0):
        assert packed_samples.read_sample(path, index) == contents[index]


def test_a_file_cut_off_anywhere_says_so_and_gives_what_is_whole(packed):
    path, contents = packed
    whole = path.read_bytes()
    ends = [len(whole) - sum(map(len, contents[index + 1 :])) for index in range(5)]
    for size in {0, 3, 8, 20, 55, 56, 58, 61, 200, 361, 362, 5000, len(whole) - 1}:
        path.write_bytes(whole[:size])
        for index in range(5):
            if size >= 56 and size >= ends[index]:
                assert packed_samples.read_sample(path, index) == contents[index]
            else:
                with pytest.raises(ValueError, match="cut off"):
                    packed_samples.read_sample(path, index)


@pytest.mark.parametrize("index", [-1, 5, 1000])
def test_a_number_that_is_no_sample_is_rejected(packed, index):
    with pytest.raises(IndexError, match="holds 5 samples"):
        packed_samples.read_sample(packed[0], index)


def read_in_own_order(comm, path, count, rounds):
    order = random.Random(comm.rank).choices(range(count), k=rounds)
    comm.Barrier()
    return [(index, packed_samples.read_sample(path, index)) for index in order]


def test_two_ranks_read_one_file_at_once(four_ranks, packed):
    path, contents = packed
    run = four_ranks.run(read_in_own_order, path, len(contents), 300, ranks=2)
    for found in run.results:
        assert len(found) == 300 and all(sample == contents[index] for index, sample in found)


@pytest.fixture
def album(tmp_path):
    """A few photos, each in a file and all in one."""
    pictures = photos.jpeg_digits(12)
    paths = photos.write_photos(pictures, tmp_path)
    packed_samples.pack_samples(pictures, tmp_path / "packed")
    return pictures, paths, tmp_path / "packed"


@pytest.mark.parametrize("workers", [0, 2])
def test_a_torch_dataset_reads_packed_photos_at_random(album, workers):
    pictures, paths, packed = album
    sets = photos.PhotoFiles(paths), photos.PackedPhotos(packed, len(pictures))
    order = torch.randperm(12).tolist()
    many, one = (torch.cat(list(DataLoader(one, 4, sampler=order, num_workers=workers))) for one in sets)
    assert torch.equal(many, one) and many.shape == (12, 3, 32, 32) and many.dtype == torch.float32
    assert torch.equal(one, torch.stack([photos.decode(pictures[index]) for index in order]))


def test_reading_is_called_cold_only_where_the_disk_was_asked(album, monkeypatch):
    pictures, paths, packed = album
    read = photos.readers(paths, packed)
    for way, files in (("one file each", paths), ("packed", [packed])):
        warm = reading_speed.time_reading(read[way], 12, files, cold=False, rounds=2)
        assert not warm.cold and len(warm.seconds.values) == 2
    monkeypatch.setattr(reading_speed, "from_disk", lambda: 0)  # a system that does not count
    assert not reading_speed.time_reading(read["packed"], 12, [packed], cold=True, rounds=1).cold
    counts = iter(range(0, 10**9, 10**6))
    monkeypatch.setattr(reading_speed, "from_disk", lambda: next(counts))
    assert reading_speed.time_reading(read["packed"], 12, [packed], cold=True, rounds=2).cold


def readings(many: float, packed: float, cold: bool) -> dict[str, reading_speed.Reading]:
    seconds = zip(reading_speed.WAYS, (many, packed), strict=True)
    return {way: reading_speed.Reading(Measured((one,)), cold) for way, one in seconds}


def test_what_is_said_of_reading_is_chosen_from_the_numbers():
    warm = readings(1.0, 1.0, False)
    assert reading_sentence(readings(3.0, 1.0, False), warm).startswith("Warm only")
    assert "it is the disk that suffers" in reading_sentence(readings(3.0, 1.0, True), warm)
    assert "copes well" in reading_sentence(readings(1.04, 1.0, True), warm)
    assert list(reading_speed.groups(readings(3.0, 1.0, True), warm)) == ["cold", "warm"]
    assert list(reading_speed.groups(readings(3.0, 1.0, False), warm)) == ["warm"]


@pytest.mark.parametrize(
    ("seconds", "cores", "said"),
    [
        ((1.0, 1.0, 0.5), 2, "2 workers are 2.0 times as fast as none. Decoding"),
        ((1.0, 0.5, 0.6), 2, "1 worker is 2.0 times as fast as none. More workers than that gain nothing on 2 cores"),
        ((4.0, 2.0, 1.0), 2, "as none. That is more than 3 processes can explain"),
        ((1.0, 1.4, 1.2), 1, "workers gain nothing"),
    ],
)
def test_what_is_said_of_workers_is_chosen_from_the_numbers(seconds, cores, said):
    took = {"packed": {workers: Measured((one,)) for workers, one in enumerate(seconds)}}
    assert said in workers_sentence(took, cores)


def test_workers_are_timed_without_their_start():
    dataset = torch.utils.data.TensorDataset(torch.arange(6))
    assert len(reading_speed.time_workers(dataset, 1, batch_size=3, rounds=2).values) == 2


def test_photos_lie_beside_the_data_and_go_away(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "data"))
    with photos.working_folder() as folder:
        assert Path(folder).parent == tmp_path / "data"
    assert not any((tmp_path / "data").iterdir())
    (tmp_path / "file").touch()
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "file" / "no folder"))
    with photos.working_folder() as folder:
        assert Path(folder).is_dir()


def test_layers_without_a_kind_are_left_out():
    assert layer_costs.kind_of(nn.Flatten()) is None and layer_costs.kind_of(nn.Linear(1, 1)) == "linear"


def test_a_sum_moves_a_number_more_where_its_time_says_so():
    moved = machine_rates.numbers_moved(threads=1, rounds=3)
    assert set(moved) == {"sum", "copy"}
    assert all(len(values.values) == 3 and values.low > 0 for values in moved.values())


@pytest.mark.parametrize(
    ("moved", "found"),
    [
        ([3.9, 4.0, 4.1], "So this processor fetches the lines that the sum only overwrites."),
        ([2.9, 3.0, 3.1], "doesn't fetch"),
        ([3.4, 3.4, 3.5], "fetches some"),
    ],
)
def test_the_numbers_that_move_decide_what_the_sentence_says(moved, found):
    text = moved_sentence({"sum": Measured(tuple(moved)), "copy": Measured((3.0,))})
    assert found in text.splitlines()[-1]
    assert f"the sum asks for 3 numbers and moves {sorted(moved)[1]:.1f}" in text


def test_a_data_sheets_figures_fit_together():
    for machine in (*data_sheets.MACHINES, data_sheets.A100, data_sheets.H200, data_sheets.TPU):
        assert machine.ridge * machine.bandwidth == pytest.approx(machine.flops)
        assert machine.balance == pytest.approx(machine.number_bytes * machine.ridge)
        assert machine.source and machine.address.startswith("https://")
    flops = [machine.flops for machine in data_sheets.MACHINES]
    assert flops == sorted(flops)
    node, gpu = data_sheets.NODE, data_sheets.H100
    assert (node.flops, node.bandwidth, node.memory) == (8 * gpu.flops, 8 * gpu.bandwidth, 8 * gpu.memory)
    assert node.ridge == gpu.ridge and node.link == 8 * data_sheets.INFINIBAND_400


def test_the_planner_takes_its_gpus_from_the_data_sheets():
    for make, sheet in ((gpu_clusters.H100, data_sheets.H100), (gpu_clusters.H200, data_sheets.H200)):
        cluster = make(16)
        assert (cluster.flops, cluster.memory, cluster.bandwidth) == (sheet.flops, sheet.memory, sheet.bandwidth)
        assert cluster.inside == sheet.link and cluster.node * cluster.between == data_sheets.NODE.link
    assert gpu_clusters.A100(8).flops == data_sheets.A100.flops


def test_this_machine_has_the_rates_that_were_measured():
    mine = data_sheets.this_machine(1e11, 2e10)
    assert (mine.ridge, mine.balance) == (5, 20) and mine.memory > 1e8
    table = machines_table([mine, data_sheets.H100]).splitlines()
    assert (
        len(table) == 4 and "| 100 GFLOP/s | 20 GB/s |" in table[2] and table[2].endswith("| 5 | 20 | – | measured |")
    )
    assert "| 295 | 590 | 450 GB/s | [NVIDIA, H100](https://www.nvidia.com/" in table[3]
    title = machines_title(data_sheets.H100, data_sheets.H100.balance / 4)
    assert "25%" in title and title.endswith("H100")
    assert "100%" in machines_title(data_sheets.H100, 1e6)
    shown = MachinesTable([mine, data_sheets.H100])
    assert shown._repr_markdown_().splitlines() == table
    plain = repr(shown).splitlines()
    assert len(plain) == 3 and plain[2].endswith("295              590  450 GB/s  NVIDIA, H100")
    picture = rooflines([mine, data_sheets.H100], {"adding vectors": 1 / 3}, "a title")
    assert "this machine: 100 GFLOP/s from 20 operations per number on" in picture.alt_text


@pytest.mark.parametrize(
    ("amount", "text"), [(5e7, "0.05 GB"), (2e9, "2 GB"), (3.35e12, "3.35 TB"), (5.49e16, "54.9 PB"), (1.6e19, "16 EB")]
)
def test_an_amount_gets_the_prefix_that_suits_it(amount, text):
    assert data_sheets.with_prefix(amount, "B") == text


def test_what_a_larger_batch_costs_is_said_of_the_middle_and_of_the_largest():
    seconds = {images: Measured((cost,)) for images, cost in {1: 1.0, 16: 2.0, 256: 20.0}.items()}
    assert batches_text(seconds) == ("16 images take 2 times as long as 1 image", "256 images take 20 times as long.")
    picture = roofline({"batch 1": (0.5, Measured((1e9, 2e9, 3e9)))}, 1e11, 1e10, "a title")
    assert "batch 1: 2 GFLOP/s at 0.5 FLOP per byte" in picture.alt_text


def test_the_costs_of_a_kind_are_those_of_its_layers():
    model, x = vgg11(width=0.125), torch.randn(2, 3, 32, 32)
    costs = layer_costs.count_layers(model, x)
    timed = layer_costs.time_layers(model, x, 1e11, 1e10, threads=1, repeats=1)
    for kind, (flops, nbytes) in costs.items():
        assert flops == sum(layer.flops for layer in timed if layer.kind == kind)
        assert nbytes == sum(layer.nbytes for layer in timed if layer.kind == kind)


def test_without_onednn_a_convolution_gives_the_same_numbers():
    layer, x = nn.Conv2d(8, 8, 3, padding=1), torch.randn(2, 8, 6, 6)
    before = torch.backends.mkldnn.enabled
    with machine_rates.without_onednn():
        assert not torch.backends.mkldnn.enabled
        without = layer(x)
    assert torch.backends.mkldnn.enabled == before and torch.allclose(layer(x), without, atol=1e-5)


@pytest.mark.parametrize(
    ("logical", "physical", "found"), [(8, 4, "this machine has 4"), (2, 2, "none of which"), (None, 2, "doesn't tell")]
)
def test_the_system_is_asked_for_cores_that_pretend_to_be_more(logical, physical, found):
    times = {2: Measured((1.0,)), 4: Measured((2.0,))}
    text = hyperthreads_sentence(times, 2, logical, physical)
    assert found in text and "With 4 threads it takes 2 times as long as with 2." in text


def test_sketches_describe_themselves():
    assert "Seven additions in a chain" in chain_and_tree().alt_text
    assert "the offsets 40, 43, 48, 50," in packed_file([b"cat", b"goose", b"ox"]).alt_text
