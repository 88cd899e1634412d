"""Publishing, from sources to what people open: notebooks, exercises, solutions, slides and the website.

notebooks/src/NN_stem.py  ->  notebooks/NN_stem.ipynb, and so for NN_stem_part_2.py and NN_stem_further.py
exercises/src/NN_stem.py  ->  exercises/NN_stem.ipynb and exercises/solutions/NN_stem.ipynb
slides/src/NN_stem.md     ->  slides/build/NN_stem/ (not committed)

`python -m workshop.publish build|check|slides [STEM …]` does it; `make notebooks`, `make notebooks-check` and
`make slides` call that.
"""

from workshop.publish.sources import AuthoringError

__all__ = ["AuthoringError"]
