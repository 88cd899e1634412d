"""`course grade`: marks for notebooks of people whom one does not know.

Of a submission only imports, definitions and assignments are run, and only on ranks started for it: processes with
limits on time, memory and file size, in an empty folder, and where the system allows it (`containment.obstacle`) with
no network, no other process in sight, nothing writable, and the course's answers covered. The grader's own process
never runs a line of a submission, and reads replies as data; the expected values never leave it.

What is not contained: the counts of messages and bytes are made inside the ranks. An answer that takes the recorder
apart is refused where the guard sees it (an import of the grader's modules, an exchanged function), but code that is
bent on forging a count from within can; it still has to compute the right values. The kernel does not hold root to a
limit of processes: then the guard refuses them, and the grader ends a set that multiplies. Other files that the
teacher may read can be read; the guard refuses notebooks and the course's own.

This module is empty because the ranks import it, and must not see the checks.
"""
