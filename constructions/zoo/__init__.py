"""Named circuits with plain answers beside them: built, proved, asked, and their data with labels."""
