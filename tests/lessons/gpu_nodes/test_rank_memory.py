"""What a rank keeps with DDP and with FSDP2: counted on real ranks beside the formula; and a GPU's, recorded."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from course_utils.lessons.gpu_nodes.rank_memory import RankMemory, TextModel, memory_by_way, recorded_memory
from course_utils.lessons.gpu_nodes.sentences import kept_shares, kept_text, recorded_memory_text
from course_utils.lessons.model_parallel.memory_parts import Memory, Parallelism
from course_utils.lessons.model_parallel.training_memory import training_memory

RESULTS = Path(__file__).parents[2] / "gpu" / "results" / "2026-11-26-h100.jsonl"


def test_each_rank_keeps_what_the_formula_says_whole_and_in_parts(four_ranks) -> None:
    kept = memory_by_way(four_ranks, TextModel(width=32, depth=2, length=8))
    for one in kept.values():
        for part, expected in one.formula.parts().items():
            assert one.counted.parts()[part] == pytest.approx(expected, rel=0.01), part
        assert one.given_out == 0, "no GPU here"
    assert kept["DDP"].counted.activations == kept["FSDP2"].counted.activations
    assert kept_shares(kept["DDP"], kept["FSDP2"])["model"] == pytest.approx(25, rel=0.01)


def test_the_sentence_names_what_a_gpu_has_given_out_where_there_is_one() -> None:
    whole, parts = Memory(4e6, 4e6, 8e6, 2e6), Memory(1e6, 1e6, 2e6, 2e6)
    kept = {"DDP": RankMemory(whole, whole), "FSDP2": RankMemory(parts, parts)}
    assert kept_text(kept) == "With FSDP2 a rank keeps 6 MB, with DDP 18 MB"
    assert kept_shares(*kept.values()) == {"model": 25.0, "everything": pytest.approx(100 / 3)}
    kept = {way: RankMemory(one.counted, one.formula, 20_000_000) for way, one in kept.items()}
    assert kept_text(kept).endswith("(most in use at one moment: 20 MB and 20 MB)")


def test_the_recording_is_what_the_checks_on_the_gpu_measured() -> None:
    recorded = recorded_memory()
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    measured = {row["metric"].partition(" (")[0]: row["value"] for row in rows if row.get("check") == "sharded-memory"}
    for way, stage in {"whole": 0, "FSDP2": 3}.items():
        assert recorded.given_out[way] == round(measured[f"stage {stage}, P = 2, most"] * 1e6)
        model = TextModel(**recorded.sizes)
        cut = Parallelism(data=recorded.ranks, zero=stage)
        formula = training_memory(model.build(), model.batch, model.length, "adam", parallelism=cut)
        assert recorded.formula[way] == pytest.approx(formula.total)
    assert rows[0]["date"] == recorded.date and recorded.machine.split(",")[0] in rows[0]["measured"]
    assert "without sharding: at most 2.1 GB; by the formula 2.2 GB (-6%)" in recorded_memory_text(recorded)
    assert asdict(model).keys() == recorded.sizes.keys()
