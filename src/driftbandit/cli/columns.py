"""Options that say what a log calls its columns."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["ArmColumn", "RewardColumn", "RoundColumn", "RoundStep", "SequenceColumn", "named"]

PANEL = "Columns of the log"

RoundColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The rounds: whole numbers, or dates and times.",
        show_default="round",
        rich_help_panel=PANEL,
    ),
]
RoundStep = Annotated[
    str | None,
    typer.Option(
        metavar="STEP",
        help="How long a round is, if rounds are times: hour, 15 minutes, week, …",
        show_default="a day, or what all times share",
        rich_help_panel=PANEL,
    ),
]
ArmColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The arms, in --arms too.",
        show_default="arm",
        rich_help_panel=PANEL,
    ),
]
RewardColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The rewards.", show_default="reward", rich_help_panel=PANEL),
]
SequenceColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The independent run a row is of.",
        show_default="sequence, if there is one",
        rich_help_panel=PANEL,
    ),
]


def named(**given: str | None) -> dict[str, str] | None:
    """What the library takes as ``columns``; None if no option was given.

    Example:
        >>> named(round="day", arm=None), named(round=None)
        ({'round': 'day'}, None)
    """
    return {key: name for key, name in given.items() if name is not None} or None
