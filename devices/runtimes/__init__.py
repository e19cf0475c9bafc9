"""How an engine uses a device: fitted coefficients as TOML, each with its error."""
