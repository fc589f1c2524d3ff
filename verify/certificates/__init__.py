"""Certificates: proofs about the weights of modules that have no checkpoint, which the checker would need.

All else is proved by `verify/checker`. The modules that prove import torch, and this package does not.
"""

from verify.certificates.certificate import Certificate, Refused, Violated

__all__ = ["Certificate", "Refused", "Violated"]
