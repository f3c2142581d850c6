"""The demonstration: two providers over bundled collections, one service, one portal.

`harbour`, `logbook` and `orchard` hold the documents.
"""
