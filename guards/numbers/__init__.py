"""Numbers in English and Chinese text: find them with exact spans, normalize them, compare them."""
