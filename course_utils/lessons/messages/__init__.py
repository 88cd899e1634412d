"""Lesson 4, How do processes talk? Read `point_to_point` first.

Upper-case methods of a communicator (`Send`, `Recv`, …) move the memory of a NumPy array; lower-case ones any object.
`broadcast_and_scatter` gives one rank's numbers to all; `ping_pong` says what a message costs.
"""
