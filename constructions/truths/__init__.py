"""What the theorems do not say: statements that fail as printed, each with a counterexample and with what does hold."""
