"""One SQLite file that survives: rows, journal, archive."""
