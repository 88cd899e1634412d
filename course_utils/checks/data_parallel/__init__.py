"""The exercises of lesson 6: P replicas of a model that train as one."""

from course_utils.checks.data_parallel.average import AVERAGE_GRADIENTS
from course_utils.checks.data_parallel.broadcast import BROADCAST_PARAMETERS
from course_utils.checks.data_parallel.norm import SYNC_BATCH_NORM
from course_utils.checks.data_parallel.rate import SCALED_LEARNING_RATE
from course_utils.checks.data_parallel.shards import SHARD_INDICES

EXERCISES = (SHARD_INDICES, BROADCAST_PARAMETERS, AVERAGE_GRADIENTS, SCALED_LEARNING_RATE, SYNC_BATCH_NORM)
