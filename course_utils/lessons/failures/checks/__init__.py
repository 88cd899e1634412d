"""The exercises of lesson 18: a quorum, healing, reads of pieces, a save in the background, wrong weights."""
