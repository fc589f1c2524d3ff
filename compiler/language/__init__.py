"""The language of circuits: alphabets, typed streams, operations, input languages."""
