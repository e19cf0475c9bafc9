"""Names of people in English and Chinese text: find them, match them against the source."""
