"""Where the time of a training step goes: what torch.profiler saw on all ranks, on one clock, and what follows from it.

`record` profiles steps on every rank; `clock` puts the ranks on one clock; `merge` makes one Chrome trace of theirs,
and `chrome` says what is wrong with one; `lanes` reads when each rank computed and communicated; `shares` and
`intervals` count in that. `slow` holds five training programs, each slow for one reason, and `ratio` says how much
faster a better one is. The picture is `draw.profile`.
"""
