"""int4 and int8 weights, int8 KV cache, and what they cost in accuracy."""
