"""Why the blocks compute without error, and the checks that refuse where they would not."""
