"""`construct report`: a checkpoint as one page to look at, with an interpreter of its own."""
