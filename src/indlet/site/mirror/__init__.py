"""The files that a repository's records stand for, brought into a folder and kept in step.

paths.py     where a URL's file lies, which is never outside the folder
journal.py   what the folder holds and how far the harvest has come
pages.py     the pages of a list
page_scan.py a page of ours, read without a parser
fetch.py     a file by reference
archive.py   a WARC file beside the folder
run.py       the harvest
"""
