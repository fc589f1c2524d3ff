"""What a name draws, where nothing else decides: the same in every run and on every machine."""

from __future__ import annotations

import hashlib


def lot(name: str, count: int) -> int:
    """0 … count − 1. No two names draw in step, as they do by a checksum: CRC-32 is linear, so for names that differ in
    one place, and are as long, whether their last bits agree is the same whatever stands before.
    """
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") % count
