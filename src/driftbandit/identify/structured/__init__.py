"""Learning the parameters of a structure (`driftbandit.structure`) from a log.

rows.py → likelihood.py → fitting.py → intervals.py, selection.py, components.py, report.py
"""
