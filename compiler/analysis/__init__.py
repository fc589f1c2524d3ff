"""What is known about every stream: domains, linear forms, scales."""
