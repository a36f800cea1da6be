"""Data that ships with the package, written or computed for it."""
