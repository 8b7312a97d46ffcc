"""Adapters to other libraries, each behind an extra and imported by name alone.

driftbandit.adapters.gymnasium   LGDSBandit, the bandit as an environment: driftbandit[gym]
driftbandit.adapters.river       KalmanPolicy, the policies in river's bandits: driftbandit[river]
"""

__all__ = ["missing"]


def missing(adapter: str, library: str, extra: str) -> ImportError:
    """The error of an adapter whose library is not installed; it names the remedy."""
    return ImportError(f"{adapter} needs {library}: pip install 'driftbandit[{extra}]'")
