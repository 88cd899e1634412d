"""Pictures of runs. Every function takes data (events, lists, numbers) and returns a Figure with an `alt_text`.

Nothing here knows where the ranks run, or any lesson: a lesson's own drawings are in its room, in `pictures`.
matplotlib is imported with the first picture, not with the package.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from course_utils.draw.bars import SharesPanel as SharesPanel
    from course_utils.draw.bars import above_bound as above_bound
    from course_utils.draw.bars import measured_bars as measured_bars
    from course_utils.draw.bars import shares as shares
    from course_utils.draw.bars import stacked_bars as stacked_bars
    from course_utils.draw.block_panels import blocks as blocks
    from course_utils.draw.core_grid import cores as cores
    from course_utils.draw.curves import loss_curves as loss_curves
    from course_utils.draw.lines import over_numbers as over_numbers
    from course_utils.draw.message_timeline.timelines import timeline as timeline
    from course_utils.draw.message_timeline.timelines import timelines as timelines
    from course_utils.draw.sliders import with_sliders as with_sliders
    from course_utils.draw.style import Picture as Picture
    from course_utils.draw.traffic_panels import traffic as traffic
    from course_utils.draw.wait_arrows import waits as waits

__getattr__, __dir__, __all__ = attach(__name__, __file__)
