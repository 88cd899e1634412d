"""`course grade`: marks for notebooks of people whom one does not know.

A submission's cells run on ranks started for it in a box (`bubblewrap`); what comes back is read as data (`wire`). The
grader's own process never runs a line of a submission, and no expected value is in a box before the answer has been
given. `docs/grading.md` says what is promised, and what is not.

Read `grade_class` first, from notebooks to marks; then `grading`, one submission; then `containment`, the ranks.
In the box run `contained_rank` and `rank_service`, and nothing else of this folder.

This module is empty because the ranks import it, and must not see the checks.
"""
