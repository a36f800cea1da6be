"""The in-process indexes of one scope: metadata columns, BM25, entities, vectors. Rows are appended and tombstoned."""
