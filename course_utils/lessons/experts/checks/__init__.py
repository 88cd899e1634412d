"""The exercises of lesson 16: the gate, rows to experts and back, a capacity, and sums of gradients."""
