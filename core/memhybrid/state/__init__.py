"""What memhybrid keeps beside Chroma: the cache of analysed memories (can be rebuilt) and the usage ledger (cannot)."""
