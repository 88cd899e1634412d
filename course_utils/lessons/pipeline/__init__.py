"""Lesson 10, How are all stages kept busy? Read `schedules` first: a schedule is data, everything else reads it.

`actions` are what it is made of; `interleaved` and `zero_bubble` write others; `send_and_receive` puts messages in;
`validate` says what is wrong with one, `timing` when everything happens; `run_schedule` does it on real ranks.
"""
