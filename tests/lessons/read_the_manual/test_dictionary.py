"""The dictionary of five frameworks: whole, with addresses, its terms taught; torch's words and rules hold in torch."""

import re

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import checkpoint, device_mesh, fsdp, optim, pipelining, rpc
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.distributed.tensor import parallel
from torch.nn.parallel import DistributedDataParallel
from torch.utils import data

from course_utils.lessons.read_the_manual.dictionary import DICTIONARY
from course_utils.lessons.read_the_manual.framework_terms import Step, match_terms
from course_utils.lessons.read_the_manual.manuals import DEEPSPEED, FRAMEWORKS, HOROVOD, JAX, PAGES, TENSORFLOW, TORCH
from course_utils.syllabus import LESSONS
from workshop.publish.notebooks import ROOT

CELLS = [(entry, framework, cell) for entry in DICTIONARY for framework, cell in entry.cells.items()]
HOMES = [torch, dist, nn, DistributedDataParallel, data, data.DistributedSampler, nn.SyncBatchNorm, parallel, fsdp]
HOMES += [
    data.DataLoader,
    checkpoint,
    device_mesh,
    optim,
    pipelining,
    rpc,
    default_hooks,
    PostLocalSGDOptimizer,
    torch.profiler,
]
NO_NAMES = {"torchrun", "LOCAL_RANK", "DDP"}
"""Of torch's cells: a command, a variable, and DistributedDataParallel's short name."""


def test_every_term_has_a_cell_for_every_framework() -> None:
    assert len({entry.term for entry in DICTIONARY}) == len(DICTIONARY) >= 16
    for entry in DICTIONARY:
        assert tuple(entry.cells) == FRAMEWORKS and entry.meaning
        assert sum(not cell.says.startswith("none") for cell in entry.cells.values()) >= 2, entry.term


@pytest.mark.parametrize(("entry", "framework", "cell"), CELLS, ids=lambda one: getattr(one, "term", None))
def test_every_cell_is_short_and_has_its_page(entry, framework, cell) -> None:
    assert 0 < len(cell.says) <= 60 and cell.says.count("`") % 2 == 0
    assert cell.source and re.fullmatch(r"https://[\w.-]+\.[a-z]+/[\w./-]*", cell.address)


def test_every_page_is_cited() -> None:
    cited = {cell.address for _, _, cell in CELLS}
    assert {page.address for page in PAGES.values()} == cited and len(PAGES) == len(cited)


@pytest.mark.parametrize("entry", DICTIONARY, ids=lambda entry: entry.term)
def test_every_term_is_taught_where_it_says(entry) -> None:
    pages = [ROOT / "notebooks" / "src" / f"{path.stem}.py" for path in LESSONS[entry.lesson].notebooks]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert entry.term.lower() in text.lower().replace("\n# ", " ")
    assert [one.lesson for one in DICTIONARY] == sorted(one.lesson for one in DICTIONARY)


def test_torch_has_the_names_of_its_column() -> None:
    for entry in DICTIONARY:
        for code in re.findall(r"`(?:with model\.)?([\w.]+)", entry.cells[TORCH].says):
            name = code.removeprefix("torch.").rpartition(".")[2]
            if name not in NO_NAMES:
                assert any(hasattr(home, name) for home in HOMES), code


@pytest.mark.parametrize(
    ("framework", "settings", "ranks", "step"),
    [
        (TORCH, {"batch_size": 8, "no_sync": 2, "reduction": "mean"}, 4, Step(8, 3, 96, 3)),
        (TORCH, {"batch_size": 8, "no_sync": 2, "reduction": "sum"}, 4, Step(8, 3, 96, 24)),
        (HOROVOD, {"batch_size": 8, "backward_passes_per_step": 3, "op": "Sum"}, 4, Step(8, 3, 96, 12)),
        (DEEPSPEED, {"train_batch_size": 96, "gradient_accumulation_steps": 3}, 4, Step(8, 3, 96, 1)),
        (DEEPSPEED, {"train_micro_batch_size_per_gpu": 8}, 4, Step(8, 1, 32, 1)),
        (TENSORFLOW, {"batch": 32, "loss": "reduce_mean"}, 4, Step(8, 1, 32, 4)),
        (JAX, {"batch": 32, "every_k_schedule": 3, "collective": "pmean"}, 4, Step(8, 3, 96, 1)),
    ],
)
def test_settings_are_read_as_the_manuals_mean_them(framework, settings, ranks, step) -> None:
    assert match_terms(framework, settings, ranks) == step


def gradient_of_a_step(batch_size: int, no_sync: int, reduction: str) -> float:
    """What torch's DDP leaves in the gradient, where the gradients of all images are 1."""
    model = DistributedDataParallel(nn.Linear(1, 1, bias=False))
    images, wanted = torch.ones(batch_size, 1), torch.zeros(batch_size, 1)

    def backward() -> None:
        nn.functional.l1_loss(model(images) + 100, wanted, reduction=reduction).backward()

    with model.no_sync():
        for _ in range(no_sync):
            backward()
    backward()
    return float(model.module.weight.grad)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("no_sync", [0, 2])
def test_torch_steps_as_its_terms_say(four_ranks, no_sync, reduction) -> None:
    settings = {"batch_size": 5, "no_sync": no_sync, "reduction": reduction}
    reached = four_ranks.run(gradient_of_a_step, **settings, backend="gloo").results
    assert reached == pytest.approx([match_terms(TORCH, settings, 4).times_mean] * 4)
