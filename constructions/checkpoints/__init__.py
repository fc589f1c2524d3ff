"""From a construction to a verified checkpoint, and back from the files alone."""
