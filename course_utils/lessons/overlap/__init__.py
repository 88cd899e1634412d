"""Lesson 7, Why is DDP faster than my loop? Read `buckets` first: communication during the backward pass.

`step_times` measures what communication adds to a step, and `bucket_size` calculates how much is exposed. `compression`
sends fewer bytes, `float8` sends one for each number, and `scaling` is about more ranks. `played_hardware` stands in
for a processor and a link of each rank's own.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from .bucket_size import BucketModel, backward_times, sizes_to_try
    from .buckets import Bucket, make_buckets, overlapped
    from .compressed_training import train_compressed
    from .float8 import dequantise, quantise
    from .image_folders import digits_as_pictures, images_for_training
    from .pictures import behind_the_step, bucket_sweep, compression_methods, float8_blocks
    from .scaling import scaling_efficiency
    from .sentences import (
        amdahl_text,
        batch_text,
        best_text,
        block_size_text,
        calculation_text,
        compression_text,
        efficiency_text,
        fewer_bytes_text,
        hiding_text,
        learning_text,
        line_text,
        loopback_letter,
        loopback_text,
        speed_up_text,
        width_text,
    )
    from .step_times import ALONE, batch_step_times, one_step, slowest, small_vgg, step_times
    from .torchrun import TRAIN_PROGRAM, run_torchrun

__getattr__, __dir__, __all__ = attach(__name__, __file__)
