"""Which mixture of parallelisms a large model needs, on paper only: nothing here is run or measured.

`models` are published ones, `clusters` what is assumed of GPUs and links; a `layout` is one mixture. `memory` and
`times` are the formulas, each with its source; `plan` tries every layout; `published` sets the formulas beside what
others have measured.
"""

from course_utils.planner.clusters import A100, H100, Cluster
from course_utils.planner.models import MODELS, LanguageModel
from course_utils.planner.plan import Choice, best, plan

__all__ = ["A100", "H100", "MODELS", "Choice", "Cluster", "LanguageModel", "best", "plan"]
