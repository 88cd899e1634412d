"""Lesson 15, Can I now read any framework's manual? Read `framework_terms` first.

One training step in other frameworks (`framework_steps`, `lightning`), the words of their `manuals` (`dictionary`,
`passages`), and the `capstone`.
"""
