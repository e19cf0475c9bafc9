"""Facts of machines: memory, bandwidth, compute and storage, each with its source."""
