"""A page of the website: for some models and clusters, what the planner of lesson 11 says of their layouts."""

from course_utils.lessons.hybrid_and_sharded.planner.plan_report import PlanReport, report
from course_utils.lessons.hybrid_and_sharded.planner.published_h100 import published_finding

ON_THE_PAGE = (
    ("Llama 7B", 8, "h100"),
    ("Llama 3 70B", 64, "h100"),
    ("Mixtral 8x7B", 64, "h100"),
    ("Llama 3 405B", 512, "h100"),
    ("Llama 7B", 2048, "h100"),
)
"""Model, number of GPUs and their kind: small, large, with experts, very large, and one that waits for messages."""


def plans_page() -> str:
    """The page, in Markdown: the reports of `ON_THE_PAGE`, and how far such predictions are off."""
    parts = [
        "# Which layout? Plans on paper",
        "A planner goes through all layouts of a training, and predicts memory and time by the formulas of"
        " [lesson 11](../notebooks/11_hybrid_and_sharded.ipynb). Nothing here was run. In a terminal"
        ' `course plan "Llama 3 70B" --gpus 64 --of h100` writes such a report for other models and clusters.',
        f"{published_finding()}.",
    ]
    for model, gpus, of in ON_THE_PAGE:
        parts += [f"## {model} on {gpus} {of.upper()}", as_markdown(report(model, gpus, of))]
    return "\n\n".join(parts) + "\n"


def as_markdown(plans: PlanReport) -> str:
    """What the planner says, as a table."""
    table = ["| No. | Layout | A step | Memory | Why it loses |", "|---|---|---|---|---|"] if plans.rows else []
    table += [f"| {number} | {' | '.join(row)} |" for number, row in enumerate(plans.rows, start=1)]
    return "\n\n".join([plans.head, "\n".join(table), *plans.notes])
