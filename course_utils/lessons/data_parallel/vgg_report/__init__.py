"""The CS744 report (task 1, 2a, 2b, 3; VGG-11 on 4 nodes) redone from one's own runs: made, kept and drawn.

`training_run.train_way(ranks, "DDP")` makes a run and keeps it; `figures` draws any runs beside `published_numbers`.
"""
