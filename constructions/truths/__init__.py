"""Where the papers' statements fail as printed, leave a condition unsaid, or hold on paper and not on floats."""
