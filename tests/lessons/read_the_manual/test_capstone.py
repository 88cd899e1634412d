"""The capstone: images dealt out, counters, weights that agree or do not, sentences, picture, and the report."""

import dataclasses
import os
import socket
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory

import numpy as np
import pytest
import torch
import torch.distributed as dist

import course_utils as course
from course_utils import system
from course_utils.checks import progress_records
from course_utils.checks.finding import Finding
from course_utils.checks.finding_text import text_of
from course_utils.errors import CourseError
from course_utils.lessons.data_parallel.gradients import broadcast_parameters
from course_utils.lessons.data_parallel.report import NONE_YET
from course_utils.lessons.read_the_manual.capstone import kept_results
from course_utils.lessons.read_the_manual.capstone.combinations import COMBINATIONS, what_others_reached
from course_utils.lessons.read_the_manual.capstone.faults import (
    MEANS,
    NEARLY,
    SUM,
    WEIGHTS,
    began_apart,
    disagreement,
    missed,
    past_the_links,
    too_little,
    unfit,
    wrong_part,
)
from course_utils.lessons.read_the_manual.capstone.on_ranks import FirstStep, ImagePasses, weights_of
from course_utils.lessons.read_the_manual.capstone.past_the_links import PastTheLinks
from course_utils.lessons.read_the_manual.capstone.pictures import budget_bars
from course_utils.lessons.read_the_manual.capstone.result import ACCURACY, CapstoneResult, recognised
from course_utils.lessons.read_the_manual.capstone.sent_bytes import SOCKETS, SentBytes, wait_until_sent
from course_utils.lessons.read_the_manual.capstone.task import BUDGET, IMAGES, NODES, as_images, deal, network
from course_utils.lessons.read_the_manual.capstone.trial import tried
from course_utils.syllabus import ROOT

WELL = CapstoneResult(0.98, [BUDGET.bytes // 2] * 4, [BUDGET.passes] * 4, 52_600_000, links=False)
NOTHING = {"files": 0, "memory": 0, "Unix sockets": 0}


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    monkeypatch.setattr(progress_records.SESSION, "_path", None)


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """On a busy machine threads that wait for each other take minutes for what one does in seconds."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def returned(seed: int = 0, **changes) -> dict:
    """What a rank hands back."""
    weights = {name: values.numpy() for name, values in network(seed).state_dict().items()}
    return {"weights": weights, "returned": "Sequential", "images": 10, "sent": 10**6, "past": NOTHING} | changes


def test_every_node_has_images_of_its_own_and_none_is_held_out(seed) -> None:
    dealt = deal(np.random.default_rng(seed))
    assert [len(x) for x, _ in dealt.shards] == [IMAGES] * NODES
    of_nodes = np.concatenate([x for x, _ in dealt.shards])
    held_out = {x.tobytes() for x in dealt.held_out[0]}
    assert sum(x.tobytes() in held_out for x in of_nodes) <= 1  # scikit-learn's digits hold hardly a pair of twins
    assert set(dealt.held_out[1]) == set(range(10))


def test_labels_mean_something_else_in_each_check() -> None:
    first, second = (deal(np.random.default_rng(seed)) for seed in (0, 1))
    meaning = [{x.round(2).tobytes(): y for x, y in zip(*one.held_out, strict=True)} for one in (first, second)]
    assert meaning[0] != meaning[1]


def test_images_have_the_shape_that_the_network_takes() -> None:
    images = as_images(np.zeros((2, 64), dtype=np.float32))
    assert images.shape == (2, 3, 32, 32) and network(0).eval()(images).shape == (2, 10)


def layer_by_layer(model, images):
    for layer in model:
        images = layer(images)


@pytest.mark.parametrize(
    "pass_through",
    [
        lambda model, x: model(x),
        layer_by_layer,
        lambda model, x: model[4:](model[:4](x)),
        lambda model, x: model(input=x),
    ],
    ids=["whole", "layer by layer", "in two stages", "by keyword"],
)
def test_images_are_counted_however_they_pass_through_the_model(pass_through) -> None:
    model = network(0)
    looks = []
    passes = ImagePasses(model, lambda: looks.append(passes.trained))
    for _ in range(5):
        pass_through(model, torch.zeros(4, 3, 32, 32))
    pass_through(model.eval(), torch.zeros(2, 3, 32, 32))
    assert passes.trained == 20 and passes.total == 22 and looks == [4, 8, 16]


def test_an_image_counts_once_forward_and_twice_backward() -> None:
    model = network(0)
    passes = ImagePasses(model)
    model(torch.ones(4, 3, 32, 32)).sum().backward()
    assert passes.total == 4 + 8
    torch.autograd.grad(model(torch.ones(4, 3, 32, 32)).sum(), list(model.parameters()))
    assert passes.total == 2 * 12
    with torch.no_grad():
        model(torch.ones(4, 3, 32, 32))
    assert passes.total == 2 * 12 + 4


def test_what_still_waits_for_the_link_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sender:
        receiver, _ = server.accept()
        with receiver:
            sender.sendall(bytes(1000))
            wait_until_sent()
            assert system.queued_in(sender) == system.queued_in(server) == 0


def sent_by_one_all_reduce(numbers: int) -> tuple[int, str]:
    dist.all_reduce(torch.zeros(1))  # opens the connections
    counter = SentBytes()
    dist.all_reduce(torch.zeros(numbers))
    return counter.so_far(), counter.where


def test_the_sockets_count_what_an_all_reduce_sends(four_ranks) -> None:
    numbers = 100_000
    for sent, where in four_ranks.run(sent_by_one_all_reduce, numbers, backend="gloo").results:
        assert where == SOCKETS
        assert 1.5 * 4 * numbers <= sent <= 1.55 * 4 * numbers


def barely(model, images, labels):
    """One forward pass, no step, and rank 0's weights everywhere."""
    model(images[:2])
    broadcast_parameters(model)
    return model


def test_a_training_is_tried_without_a_verdict(four_ranks) -> None:
    result = tried(four_ranks, barely, seed=1)
    assert result.misses() == ["accuracy"] and not result.links
    assert 0 < max(result.sent) < result.naive_sent and result.passes == [2] * NODES
    assert not kept_results.has_failed()  # it was no attempt: most images were not used


def test_after_a_failed_attempt_the_table_is_shown(four_ranks, capsys) -> None:
    def one_epoch(model, images, labels):
        model(images)
        return barely(model, images, labels)

    assert "after your first attempt" in what_others_reached().text
    assert tried(four_ranks, one_epoch, seed=1).misses() == [ACCURACY]
    shown = capsys.readouterr().out
    assert kept_results.has_failed() and all(row.ideas in shown for row in COMBINATIONS)
    assert what_others_reached().text in shown


def test_only_a_failed_check_of_the_capstone_opens_the_table() -> None:
    progress_records.SESSION.write(exercise="match_terms", mark="✗")
    progress_records.SESSION.write(exercise="capstone", mark="○")
    kept_results.note_trial(missed=False)
    assert not kept_results.has_failed()
    progress_records.SESSION.write(exercise="capstone", mark="✗")
    assert kept_results.has_failed()


def test_what_cannot_be_tried_says_why(four_ranks) -> None:
    with pytest.raises(
        CourseError,
        match=r"cannot be weighed yet: rank 0 returned nothing.*\. So far a node sends 0\.00 MB and makes 0 image p",
    ):
        tried(four_ranks, lambda model, images, labels: None)
    with pytest.raises(CourseError, match="for 4 nodes, and here are 2. Run `ranks = course.start"):
        tried(dataclasses.make_dataclass("Ranks", ["world_size"])(2), barely)


def test_weights_are_taken_out_of_a_wrapper_and_other_networks_are_none() -> None:
    wanted = network(0).state_dict()
    wrapped = torch.nn.Module()
    wrapped.module = network(1)
    assert set(weights_of(wrapped, wanted)) == set(wanted) == set(weights_of(network(1), wanted))
    for other in (None, 0.3, torch.nn.Linear(2, 2), wanted):
        assert weights_of(other, wanted) is None


@pytest.mark.parametrize(
    ("past", "words"),
    [
        ({"files": 10**7}, "rank 1 wrote 10.00 MB into files; nodes share neither"),
        ({"memory": 10**6}, "rank 1 mapped 1.00 MB of shared memory; nodes share neither"),
        ({"Unix sockets": 1}, "rank 1 sent through a Unix socket, which ends within its node; nodes share neither"),
    ],
)
def test_what_went_past_the_links_is_named(past, words) -> None:
    assert past_the_links([returned(), returned()]) is None
    assert text_of(past_the_links([returned(), returned(past=NOTHING | past)])).startswith(words)


def test_a_rank_that_sent_nothing_has_taught_nothing() -> None:
    assert too_little([returned(), returned()]) is None
    found = too_little([returned(), returned(sent=1000)])
    assert (found.key, found.rank, found.measured) == ("too-little-sent", 1, {"sent": "0.00 MB"})


def write_a_file(folder) -> None:
    (folder / "weights").write_bytes(bytes(10**6))


def share_memory(folder) -> None:
    memory = SharedMemory(create=True, size=10**6)
    memory.close()
    memory.unlink()


def map_a_file(folder) -> None:
    np.memmap(folder / "weights", np.uint8, "w+", shape=10**6)


def map_a_file_in_torch(folder) -> torch.Tensor:
    return torch.from_file(str(folder / "weights"), shared=True, size=250_000)


def use_a_unix_socket(folder) -> None:
    name = f"\0course-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as sender:
        listener.bind(name)
        listener.listen()
        sender.connect(name)


@pytest.mark.skipif(not system.LINUX, reason="Linux alone counts what a process writes and maps")
@pytest.mark.parametrize(
    ("way", "what"),
    [
        (write_a_file, "files"),
        (share_memory, "memory"),
        (map_a_file, "memory"),
        (map_a_file_in_torch, "memory"),
        (use_a_unix_socket, "Unix sockets"),
    ],
)
def test_each_way_past_the_links_is_counted(way, what, tmp_path) -> None:
    past = PastTheLinks()
    assert past.so_far(0)["memory"] == past.so_far(0)["Unix sockets"] == 0
    kept = way(tmp_path)
    past.note_mappings()
    del kept
    counted = past.so_far(0)
    assert counted[what] >= (1 if what == "Unix sockets" else 10**6)


def test_who_only_reads_what_is_mapped_hands_nothing_over(tmp_path) -> None:
    write_a_file(tmp_path)
    past = PastTheLinks()
    for mode in ("r", "c"):
        np.memmap(tmp_path / "weights", np.uint8, mode)
    assert past.so_far(0)["memory"] == 0


def named(found: Finding) -> tuple[str, int | None, str]:
    """A finding's key, its rank, and the tensor that it names, if any."""
    return found.key, found.rank, found.values.get("tensor", "")


def test_what_cannot_be_judged_is_named_with_its_rank() -> None:
    assert unfit([returned(), returned()]) is None
    assert named(unfit([returned(), returned(weights=None, returned="NoneType")])) == ("no-network", 1, "")
    assert named(unfit([returned(), returned(images=0)])) == ("no-image", 1, "")
    assert named(unfit([returned(), returned(seed=1)])) == ("weights-differ", 1, "conv1.weight")


def test_ranks_agree_in_weights_and_in_running_means() -> None:
    other = returned()
    other["weights"]["norm1.running_mean"] = other["weights"]["norm1.running_mean"] + 1
    assert named(disagreement([returned(), other])) == ("running-means-differ", 1, "norm1.running_mean")
    other["weights"]["linear.bias"] = np.full(10, np.nan, dtype=np.float32)
    assert named(disagreement([returned(), other])) == ("weights-differ", 1, "linear.bias")
    counted = returned()
    counted["weights"]["norm1.num_batches_tracked"] = np.array(7)
    assert disagreement([returned(), counted]) is None


@pytest.fixture(scope="module")
def taught() -> tuple[dict, tuple]:
    """What a rank hands back that was trained on its images, and images to judge it by."""
    dealt = deal(np.random.default_rng(0))
    torch.manual_seed(0)
    model, (pixels, labels) = network(0), dealt.shards[0]
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for _ in range(3):
        for batch in torch.randperm(len(labels)).split(16):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(as_images(pixels[batch])), torch.from_numpy(labels[batch]))
            loss.backward()
            optimizer.step()
    return {name: values.numpy() for name, values in model.state_dict().items()}, dealt.shards[0]


def scaled(weights: dict, ending: str, factor: float) -> dict:
    return {name: values * factor if name.endswith(ending) else values for name, values in weights.items()}


GRADIENTS = [{"own": np.arange(10.0) + rank, "used": np.arange(10.0) + rank} for rank in range(4)]
TOTAL = sum(one["own"] for one in GRADIENTS)


@pytest.mark.parametrize(
    ("part", "words", "change", "used"),
    [
        (SUM, "linear.bias is the ranks' sum", None, TOTAL),
        (SUM, "conv1.weight is more than 3.5 times as long", (".weight", 4.0), None),
        (MEANS, "these weights recognise 9", (".running_mean", 4.0), TOTAL / 4),
        (MEANS, "these weights recognise 9", (".running_var", 1e-3), None),
        (WEIGHTS, "the weights are wrong, and not only", ("linear.weight", 0.0), None),
    ],
)
def test_it_is_named_which_of_sum_means_and_weights_is_wrong(taught, part, words, change, used) -> None:
    weights, held_out = taught
    weights = scaled(weights, *change) if change else weights
    measured = [
        one | {"weights": weights, "began": np.zeros(10)} | ({} if used is None else {"used": used})
        for one in GRADIENTS
    ]
    found = wrong_part(measured, held_out)
    assert found.key == part and words in text_of(found)


def test_weights_of_ranks_that_began_apart_are_wrong(taught) -> None:
    measured = [one | {"weights": taught[0], "began": np.full(10, 0.1 * rank)} for rank, one in enumerate(GRADIENTS)]
    assert wrong_part(measured, taught[1]).key == WEIGHTS
    assert began_apart(measured) and not began_apart(measured[:1] + [measured[1] | {"began": None}])


def test_the_first_gradient_is_seen_before_and_behind_its_all_reduce() -> None:
    model = network(0)
    with FirstStep(model) as first:
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        for factor in (4, 7):
            optimizer.zero_grad()
            model(torch.ones(2, 3, 32, 32)).square().sum().backward()
            for parameter in model.parameters():
                parameter.grad *= factor
            optimizer.step()
    np.testing.assert_allclose(first.used, 4 * first.own)
    assert np.any(first.own)
    np.testing.assert_array_equal(first.began, network(0).linear.bias.detach())


def test_an_untrained_network_knows_little() -> None:
    dealt = deal(np.random.default_rng(0))
    assert recognised(returned()["weights"], *dealt.held_out) < 0.5


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, []),
        ({"accuracy": BUDGET.accuracy - 0.01}, ["accuracy"]),
        ({"sent": [1, 1, 1, BUDGET.bytes + 1]}, ["bytes"]),
        ({"passes": [0, 0, 0, BUDGET.passes + 1], "sent": [BUDGET.bytes + 1] * 4}, ["bytes", "image passes"]),
        ({"accuracy": float("nan")}, ["accuracy"]),
    ],
)
def test_every_miss_is_named_in_words_and_picture(changes, names) -> None:
    result = dataclasses.replace(WELL, **changes)
    assert result.misses() == names
    assert (missed(result).measured["names"] if names else missed(result)) == (" and ".join(names) or None)
    if "accuracy" not in changes:
        title = f"Missed: {', '.join(names)}" if names else "Within all budgets"
        assert title in budget_bars(result).alt_text


def test_bad_luck_is_not_called_a_mistake() -> None:
    nearly = dataclasses.replace(WELL, accuracy=BUDGET.accuracy - BUDGET.near / 2)
    assert missed(nearly).key == NEARLY and "run the check again" in text_of(missed(nearly))
    for other in (
        dataclasses.replace(nearly, accuracy=BUDGET.accuracy - 2 * BUDGET.near),
        dataclasses.replace(nearly, sent=[BUDGET.bytes + 1] * 4),
        dataclasses.replace(nearly, passes=[BUDGET.passes + 1] * 4),
    ):
        assert missed(other).key == "missed"


def test_the_report_shows_the_latest_capstone_within_budgets(capsys) -> None:
    assert course.report() is None and NONE_YET in capsys.readouterr().out
    kept_results.keep(WELL)
    kept_results.keep(dataclasses.replace(WELL, accuracy=0.5))
    progress_records.SESSION.write(capstone_run={"form": 2, "accuracy": "high"})
    assert kept_results.kept() == [WELL, dataclasses.replace(WELL, accuracy=0.5)]
    page = course.report()
    assert "2 training runs judged, 1 within all budgets." in page.text and "accuracy: 98" in page.text


@pytest.mark.parametrize("file", ["slides/src/15_read_the_manual.md", "exercises/src/15_read_the_manual.py"])
def test_the_budgets_that_are_told_are_those_that_are_judged(file) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    budgets = (f"{BUDGET.accuracy:.0%}", f"{BUDGET.bytes / 1e6:g} MB", f"{BUDGET.passes:,} image passes")
    for bound, budget in zip(("at least", "at most", "at most"), budgets, strict=True):
        assert f"{bound} {budget}" in text
