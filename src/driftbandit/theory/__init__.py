"""What the paper proves and measures about policies, computed.

Functions about a policy take its ``bonus``. A `System` may stand for a model and its arms:
``finite_lower_bound(system)`` is ``finite_lower_bound(model, arms)``.
"""

from driftbandit.theory.bounds import (
    Bound,
    RegretBound,
    finite_lower_bound,
    path_upper_bound,
    printed_finite_lower_bound,
    round_upper_bound,
    sphere_lower_bound,
    ucb_upper_bound,
)
from driftbandit.theory.exploration import (
    Schedule,
    exploration_schedule,
    no_arm_is_explored_forever,
    sphere_two_step_value,
    two_step_upper_bound,
    two_step_value,
)
from driftbandit.theory.independence import least_regret
from driftbandit.theory.metric import Intervals, metric, metric_interval, metric_intervals
from driftbandit.theory.mistakes import Mistakes, wrong_action_probability

__all__ = ["Bound", "Intervals", "Mistakes", "RegretBound", "Schedule"]
__all__ += ["exploration_schedule", "finite_lower_bound", "least_regret", "metric"]
__all__ += ["metric_interval", "metric_intervals", "no_arm_is_explored_forever"]
__all__ += ["path_upper_bound", "printed_finite_lower_bound"]
__all__ += ["round_upper_bound", "sphere_lower_bound", "sphere_two_step_value"]
__all__ += ["two_step_upper_bound", "two_step_value", "ucb_upper_bound", "wrong_action_probability"]
