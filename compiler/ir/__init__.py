"""The block IR and its builder."""
