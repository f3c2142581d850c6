"""The files of a web server as a repository, after mod_oai (Nelson, Van de Sompel, Liu et al. 2004).

ask.py          what the server says of a path, over kept connections
judge.py        whether that is the file that was found
ignore.py       what Apache would not list
tree.py         the files below a folder that the server gives out
source.py       their identifiers, sets, datestamps and records
"""
