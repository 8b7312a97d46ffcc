"""The decision service: agents behind HTTP, whose decisions and rewards are never lost.

`driftbandit serve` runs it, and `driftbandit.Client` talks to it.
"""
