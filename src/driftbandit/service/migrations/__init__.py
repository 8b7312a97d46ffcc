"""Alembic's scripts: how a store's tables became what they are."""
