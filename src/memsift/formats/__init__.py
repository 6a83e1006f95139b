"""Files that a memory can leave in and come back from. No room here knows the store."""
