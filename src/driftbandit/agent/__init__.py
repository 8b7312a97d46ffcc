"""The online engine: one policy, one decision at a time, rewards whenever they come."""

from driftbandit.agent.agent import Agent
from driftbandit.agent.choosing import Decision, Score
from driftbandit.agent.refitting import Refit

__all__ = ["Agent", "Decision", "Refit", "Score"]
