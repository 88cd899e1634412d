"""The exercises of lesson 16: the gate's choice, rows to experts and back, full experts, whose gradient is whose."""
