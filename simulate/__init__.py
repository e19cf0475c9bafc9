"""Cost, plan, and the run itself under a device's clock and memory ceiling."""
