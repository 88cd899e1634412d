"""The exercises of lesson 4: messages between ranks, and what one costs."""

from course_utils.checks.messages.broadcast import TREE_BROADCAST
from course_utils.checks.messages.exchange import EXCHANGE
from course_utils.checks.messages.line import FIT_ALPHA_BETA
from course_utils.checks.messages.ring import PASS_THE_TOKEN
from course_utils.checks.messages.scatter import SCATTER_BLOCKS

EXERCISES = (PASS_THE_TOKEN, EXCHANGE, TREE_BROADCAST, SCATTER_BLOCKS, FIT_ALPHA_BETA)
