"""What the paper proves and measures about policies, computed.

`metric`, `metric_interval` and `metric_intervals` say how far a bonus leads a policy away from the
Kalman Oracle (P17).
"""

from driftbandit.theory.metric import Intervals, metric, metric_interval, metric_intervals

__all__ = ["Intervals", "metric", "metric_interval", "metric_intervals"]
