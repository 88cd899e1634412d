"""The exercises of lesson 5: six ways to add up the vectors of all ranks, and what each takes."""
