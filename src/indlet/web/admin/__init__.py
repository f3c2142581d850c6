"""The operations desk.

desk.py       who may enter, which page, which act
show.py       the numbers of its pages
"""

from indlet.web.admin.desk import Desk

__all__ = ["Desk"]
