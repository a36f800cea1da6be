"""Measuring retrieval on labelled data: BEIR-style folders, metrics by ir-measures, comparison with peers."""
