"""Independent checks: tasks with their oracles, bounds and certificates; knows no construction and no compiler pass."""
