"""Two invented meeting transcripts, one Chinese and one English, for demos and tests."""
