"""Copy probes: needles planted in filler, asked for again."""
