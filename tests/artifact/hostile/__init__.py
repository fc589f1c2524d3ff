"""Checkpoints damaged at random, and what `construct verify` and the checker say of them.

    python -m tests.artifact.hostile 10000 [first case] [--over numbers|oversized] [--json]

Some hundred of these run in the test suite. Each takes a good checkpoint, damages one file (its bytes, a value
anywhere in its JSON, a tensor), writes the seal anew in half of the cases, and verifies, by the command and by the
checker, in a process of its own, forked from one that has imported everything. Every case must end within ten seconds
of processor time and 2 GB of memory, in one-sentence refusals or complaints, and be accepted only where every file
that a program reads is what it was.

`--over oversized` asks for too much instead: a circuit, a language, a config, a construction's parameters or a file of
any size up to 10^15 (`too_much.py`).
"""
