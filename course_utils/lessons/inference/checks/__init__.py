"""The exercises of lesson 19: what a cache holds, a token over ranks, slots, drafts, and where a prompt is read."""
