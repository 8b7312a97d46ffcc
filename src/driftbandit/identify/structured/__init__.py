"""Learning the parameters of a structure (`driftbandit.structure`) from a log.

rows.py → moves.py → likelihood.py → fitting.py → the other files
"""
