"""What the paper proves and measures about policies, computed.

Every function that speaks of a policy takes the policy's own ``bonus``. A `System` stands for a
model and its arms: ``finite_lower_bound(system)`` is ``finite_lower_bound(model, arms)``.
"""

from driftbandit.theory.lookahead import (
    sphere_two_step_value,
    two_step_upper_bound,
    two_step_value,
)
from driftbandit.theory.lower_bounds import (
    Bound,
    finite_lower_bound,
    printed_finite_lower_bound,
    sphere_lower_bound,
)
from driftbandit.theory.metric import Intervals, metric, metric_interval, metric_intervals
from driftbandit.theory.mistakes import Mistakes, wrong_action_probability
from driftbandit.theory.schedule import Schedule, every_arm_is_left, exploration_schedule
from driftbandit.theory.upper_bounds import (
    RegretBound,
    path_upper_bound,
    round_upper_bound,
    ucb_upper_bound,
)

__all__ = [
    "Bound",
    "Intervals",
    "Mistakes",
    "RegretBound",
    "Schedule",
    "every_arm_is_left",
    "exploration_schedule",
    "finite_lower_bound",
    "metric",
    "metric_interval",
    "metric_intervals",
    "path_upper_bound",
    "printed_finite_lower_bound",
    "round_upper_bound",
    "sphere_lower_bound",
    "sphere_two_step_value",
    "two_step_upper_bound",
    "two_step_value",
    "ucb_upper_bound",
    "wrong_action_probability",
]
