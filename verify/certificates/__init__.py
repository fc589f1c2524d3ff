"""Certificates: proofs about the weights of a real module, for every input of a stated domain.

`certify.certify` chooses among them; the modules that prove import torch, and this package does not.
"""

from verify.certificates.ask import Ask, adjacent_pairs
from verify.certificates.certificate import Certificate, Refused, Violated

__all__ = ["Ask", "Certificate", "Refused", "Violated", "adjacent_pairs"]
