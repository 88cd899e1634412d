"""The capstone: a narrow VGG-11 on four nodes with slow links, accurate enough, within budgets of bytes and seconds.

`task` says what is asked for and deals the images out; `measure` runs on the ranks; `judge` weighs what they measured;
`answer` is one way to do it.
"""
