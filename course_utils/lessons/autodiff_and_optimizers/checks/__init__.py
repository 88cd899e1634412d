"""The exercises of lesson 2: the order of a graph, two rules of its backward pass, and a step of Adam."""
