"""Alembic runs this file for every command; the caller gives the connection."""

from alembic import context

from driftbandit.service.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
