"""Methods by name. Each is a function from `Given` to `Found`; `oracle` alone reads the truth, to test the scorer."""
