"""Search for the claims of a proof. Nothing here is trusted: the kernel checks every claim (docs/proofs.md)."""
