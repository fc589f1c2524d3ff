"""Emission: a block of the IR as the tensors of a real module, one file per target."""
