"""The `construct` command: its sub-commands, their options, and what they show."""
