"""`course grade`: marks for notebooks of people whom one does not know.

A submission's cells run on ranks started for it, each in a box (`bubblewrap`), with cables between them that the kernel
counts (`counted_links`); what comes back is read as data (`wire`). The grader's own process never runs a line of a
submission, and the expected values never leave it. `docs/grading.md` says what is promised, and what is not.

This module is empty because the ranks import it, and must not see the checks.
"""
