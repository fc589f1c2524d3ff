"""The circuits of the zoo: one file for each family, each circuit with its answers in plain Python."""
