"""Lesson 17, What if the text does not fit? Read `merge` first, then `block_attention`.

Attention in one process, block by block (`merge`, `block_attention`); the backward pass of a block
(`block_gradients`). A text on several ranks: who has which tokens (`zigzag`, `work`), keys and values that go
round a ring (`ring_attention`, forward and backward in `long_attention`), or an exchange of heads (`ulysses`); what
each of them sends (`bytes_sent`). How long a text fits (`longest_text`, `text_memory`). A whole model on a mesh:
`mesh_model`.
"""
