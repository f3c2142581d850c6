"""Full text of repositories that exist: find the documents of harvested records, fetch and analyse them.

links.py      what names a document, and why there may be none
formats.py    the files that a metadata format names: a function for each format
locate.py     a record's candidates in order: its formats, its direct links, its landing pages
landing.py    a landing page: its links to documents, or what bars them
"""
