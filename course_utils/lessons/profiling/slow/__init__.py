"""Five training programs, each slow for one reason, and each with a faster one that gives the same losses.

`input_pipeline`, `host_waits`, `small_kernels`, `unbalanced` and `no_overlap`. Two of them need a processor and a link
for each rank. Lesson 7's `played_hardware` emulates both by waiting, because this machine may have fewer.
"""

TARGETS = {1: 1.5, 2: 1.5, 3: 1.2, 4: 1.4, 5: 1.3}
"""Number of the program → how many times as fast it can be made at least; 4 and 5 on two or more ranks."""
