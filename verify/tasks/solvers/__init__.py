"""Problems in plain Python, by the textbook: what the chains of the copy and dynamic-programming circuits must be."""
