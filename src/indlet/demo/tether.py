"""Runs a module as a program that ends when the process which started it does, however that ends.

    python -m indlet.demo.tether indlet serve --config harbour.toml

Standard input is a pipe whose other end the starting process holds and never writes to: when it is gone, even
by SIGKILL, the system closes that end.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

GRACE_SECONDS = 5.0


def _watch() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)  # the main thread is putting things away
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_watch, daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
