"""The exercises of lesson 12: the task graph, the simulator, and the search in three parts."""
