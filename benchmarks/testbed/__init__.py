"""Three small training problems and ways to set their step size while they train.

`problems` holds the training, `play` the loop, `schedules`, `bandits` and `population` the methods
that choose step sizes. ``python benchmarks/tuning.py`` compares them.
"""
