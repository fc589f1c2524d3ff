"""The passes of the compiler, one file each, in the order in which compile() runs them."""
