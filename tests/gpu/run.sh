#!/usr/bin/env bash
# Every check of the course that needs a GPU: a table, a verdict, and 0 or 1. Needs this repository and torch, no more.
#
#   tests/gpu/run.sh                  all checks; on a machine without a GPU one line, and 0 (--require-gpu: 1)
#   tests/gpu/run.sh --only memory    some; --list names them
#   tests/gpu/run.sh --device cpu     the same code on processors, with gloo in place of NCCL and small sizes
#   tests/gpu/run.sh --json FILE      the rows also as JSON, one on each line
#   tests/gpu/run.sh --ranks 2 --share-gpu   more ranks than GPUs: shows right numbers, and no times
#   tests/gpu/run.sh --part 1 --budget 540 --out FOLDER
#                                     one of five parts of the checks, the most valuable first, in at most nine minutes;
#                                     machine, rows, logs and traces go into the folder as soon as they are known
#   tests/gpu/run.sh --part 5 --budget 360 --require-gpu --out FOLDER
#                                     a larger batch, a transformer beside VGG-11, and what the planner predicts
#
# $PYTHON picks a Python; otherwise it is .venv's, or the first python3.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
python="${PYTHON:-}"
if [ -z "$python" ]; then
    python="$root/.venv/bin/python"
    [ -x "$python" ] || python=python3
fi
export PYTHONPATH="$root/tests:$root${PYTHONPATH:+:$PYTHONPATH}"
exec "$python" -m gpu "$@"
