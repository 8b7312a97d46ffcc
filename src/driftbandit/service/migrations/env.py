"""Alembic runs this file for every command; the caller gives the connection."""

from alembic import context

from driftbandit.service.tables import metadata

if hasattr(context, "config"):  # not when others import it, such as pytest in search of examples
    context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
    context.run_migrations()
