"""Full text of repositories that exist: find the documents of harvested records, fetch and analyse them.

links.py      what names a document, and why there may be none
formats.py    the files that a metadata format names: a function for each format
locate.py     a record's candidates in order: its formats, its direct links, its landing pages
landing.py    a landing page: its links to documents, or what bars them
robots.py     robots.txt;  pace.py  the pace of each host, hours, budgets
fetch.py      one record: its ways in order, its files, their vector;  extraction.py  the text of a file
cache.py      fetched documents, kept if the settings say so
work.py       one source: queue, visits, commits;  run.py  all sources;  job.py  as a job of a node
status.py     how far a source is;  plan.py  what it would take;  command.py  indlet sidecar
"""
