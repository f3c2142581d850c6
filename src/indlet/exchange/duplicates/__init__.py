"""Records of several libraries that describe one work: candidates and their scores.

features.py   what of a record is compared
blocking.py   which records are compared at all: those that share a key
score.py      how likely two records are of one work, and why
pairs.py      all of it in order, from stored records to scored pairs
listed.py     pairs with what people compare, and what they decided (`exchange/duplicates/decisions.py`)
"""
