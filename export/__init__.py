"""From a model in any form to a bundle that can be trusted: torch -> ONNX with KV cache, parity, audit."""
