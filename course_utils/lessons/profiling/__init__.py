"""Lesson 14, Where did the time go? Read `time_shares` first.

`record_profiles` profiles steps on every rank, `rank_clocks` puts the ranks on one clock, `merged_trace` makes one
Chrome trace of theirs, and `chrome_trace` says what is wrong with one; `lanes` reads when each rank computed and
communicated, `step_memory` how many bytes a step takes and when. `slow` holds five slow training programs.
"""
