"""Lesson 5, How do P machines add their vectors? Read `ring` first.

Six ways, one module each: `gather_broadcast`, `tree`, `recursive_doubling`, `halving_doubling`, `ring` and
`async_ring`; `algorithms` lists them. `double_tree` is NCCL's, beside them. `cost_model` says what each costs,
`allreduce_times` measures it, `network_fit` fits the numbers of a network, and `network_topology` makes networks of
numbers: virtual ranks run on those.
"""
