"""The machine chooses the strategy: operator graph, devices, costs, task graph, simulator, search, program.

Source: Jia, Zaharia & Aiken 2018, "Beyond Data and Model Parallelism for Deep Neural Networks" (FlexFlow).
"""
