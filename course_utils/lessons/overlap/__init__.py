"""Lesson 7, Why is DDP faster than my loop? Read `buckets` first: communication behind the backward pass.

`step_times` measures what is exposed, `bucket_size` predicts it, `compression` sends fewer bytes, `scaling` says what
more ranks bring. `played_hardware` plays a processor and a link for each rank, where there are none.
"""
