"""What gadgets and targets build with: ports, facts, lanes, a fitter of operands, a builder of blocks."""
