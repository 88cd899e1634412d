"""Lesson 12, Can the machine choose for us? Read `search.metropolis` first.

From a model to its operators (`graph`), what each part costs (`costs`), when everything happens (`simulator`), which
strategy is best (`search`), and the program that runs it (`program`). `experiments` sets predictions beside runs.

Source: Jia, Zaharia & Aiken 2018, "Beyond Data and Model Parallelism for Deep Neural Networks" (FlexFlow).
"""
