"""Pictures of circuits, of states over time and of measured rates."""
