"""Numbers on lattices: units, domains of lanes, sums of matrix rows, all rounded outward."""
