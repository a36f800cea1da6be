"""Stores that hold texts, metadata and vectors."""
