"""What a quantization did to figures and names: by kind of token, with intervals, in two languages."""
