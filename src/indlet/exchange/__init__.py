"""Exchange between libraries, after TRI (Liu, Maly, Zubair, Nelson et al.): an extension.

catalogue.py      a catalogue's export folder as a record source
translate.py      records from one format to another
write_out.py      what a catalogue imports, written as the store changes
duplicates/       records of one work: candidates, decisions and their exchange
alerts.py         what waits for somebody; notify.py sends it
ownership.py      records that a node adopts or withdraws
"""
