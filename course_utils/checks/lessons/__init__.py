"""The exercises, declared: one package for each lesson, in it one module for each exercise, named after it."""
