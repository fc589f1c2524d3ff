"""Paper D: "State Space Models are Provably Comparable to Transformers in Dynamic Token Selection"."""
