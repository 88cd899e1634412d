"""The exercises of lesson 11, a module each."""

LESSON = "11_hybrid_and_sharded"
