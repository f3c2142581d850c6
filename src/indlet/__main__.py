import os
import sys

# `python -m` imports from the working directory first, which may be a folder of strangers' files.
if sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109 - pathlib would be imported from there
    del sys.path[0]

from indlet.cli import main

main()
