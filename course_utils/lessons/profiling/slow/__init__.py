"""Five training programs, each slow for one reason, and each with a faster one that gives the same losses.

`input_pipeline`, `host_waits`, `small_kernels`, `unbalanced` and `no_overlap`. Two of them need several ranks with a
processor each, and a link; lesson 7's `played_hardware` plays those by waiting, as this machine may have fewer.
"""
