"""The papers' experiments: declared row by row, built where weights exist, refused by a theorem where none can."""
