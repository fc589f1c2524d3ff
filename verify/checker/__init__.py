"""A proof of a checkpoint from its files alone, without the compiler: `python -m verify.checker DIR`."""
