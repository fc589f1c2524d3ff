"""What is known about every stream: domains, affine forms, scales."""
