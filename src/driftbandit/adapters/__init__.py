"""Adapters to other libraries, each behind an extra and imported only by its full name.

driftbandit.adapters.gymnasium   LGDSBandit, the bandit as an environment: driftbandit[gym]
driftbandit.adapters.river       KalmanPolicy, the policies in river's bandits: driftbandit[river]
"""
