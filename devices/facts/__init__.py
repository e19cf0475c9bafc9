"""Published facts that measurements of others need: peak compute of chips, shapes of well-known models."""
