"""These scores answer the task that the manifest names."""
