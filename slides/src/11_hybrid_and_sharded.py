"""The picture of deck 11 that its pages do not have: a shorter table of plans."""

from matplotlib.figure import Figure

from course_utils.draw import style
from course_utils.lessons.hybrid_and_sharded import H100, plan, planner_pictures

GPUS = (8, 64, 512)
MODELS = ("GPT-2 1.5B", "Llama 7B", "Llama 3 70B", "GPT-3 175B", "Megatron 1T")
DRAFT = {"PAGE": {"steps": 15}, "GPUS": (8,)}


def plans() -> Figure:
    """What fits on how many GPUs, on paper: five of the nine models of the second page."""
    choices = {gpus: {name: plan(name, H100(gpus), tested_only=True) for name in MODELS} for gpus in GPUS}
    return planner_pictures.plans(choices, width=style.SLIDE_WIDTH)


FIGURES = {"11_plans": plans}
