"""The exercises of lesson 6: P replicas of a model that train as one."""
