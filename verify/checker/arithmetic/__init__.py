"""Every float operation of the packaged model gives the exact value."""
