"""A provider's web side: /oai, /ft-oai and what stands around them.

repository.py   a request becomes an answer
access.py       who may have what;  relations.py  from which networks
http.py         arguments, conditional requests, overload;  coding.py  compression
content.py      files;  pages.py  landing page, sitemap, robots.txt, health, schemas
"""

from indlet.provider.serve.application import application, routes, server

__all__ = ["application", "routes", "server"]
