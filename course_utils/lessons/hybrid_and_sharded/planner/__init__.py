"""Which mixture of parallelisms a large model needs, on paper only: nothing here is run or measured.

`language_models` are published ones, `gpu_clusters` what is assumed of GPUs and links; a `training_layout` is one
mixture. `gpu_memory` and `step_estimate` are the formulas, each with its source; `layout_search` tries every layout;
`published_h100` sets the formulas beside what others have measured. `training_times` plans whole runs on few GPUs
and on many.
"""
