"""The files that a repository's records stand for, brought into a folder and kept in step.

paths.py     where a URL's file lies, which is never outside the folder
journal.py   what the folder holds and how far the harvest has come
fetch.py     a file by reference
archive.py   a WARC file beside the folder
run.py       the harvest
"""
