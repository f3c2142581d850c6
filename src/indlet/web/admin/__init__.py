"""The operations desk.

desk.py           who may enter, which page, which act
source_pages.py   the pages about sources
source_status.py  how the sources are, in rows
show.py           the numbers of the other pages
"""

from indlet.web.admin.desk import Desk

__all__ = ["Desk"]
