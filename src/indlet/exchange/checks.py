"""Whether local read and local write would find what the settings name: formats, tables and folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from indlet.cli.check import CheckResult
from indlet.errors import IndletError
from indlet.exchange.translate import format_named, own_table
from indlet.exchange.write_check import check_task
from indlet.service.harvest.negotiate import source_name
from indlet.settings import Settings


def checks(settings: Settings) -> Iterator[CheckResult]:
    for library in settings.library:
        subject = f"library {library.name}"
        try:
            metadata = format_named(library.format)
            if library.mapping:
                own_table(library.mapping, metadata)
            yield CheckResult("format", subject, "ok", f"{library.format} can be read")
        except (IndletError, OSError) as e:
            yield CheckResult("format", subject, "problem", str(e))
    for write in settings.write:
        if not Path(write.folder).is_dir() or not os.access(write.folder, os.W_OK | os.X_OK):
            message = "is not there, or may not be written; make it, or correct [[write]]"
            yield CheckResult("folder", write.folder, "problem", message)
        else:
            yield CheckResult("folder", write.folder, "ok", "can be written")
        try:
            check_task(write)
            yield CheckResult("format", f"write {write.folder}", "ok", f"{write.format} can be written")
        except (IndletError, OSError) as e:
            yield CheckResult("format", f"write {write.folder}", "problem", str(e))
    names = {source_name(source) for source in settings.source}
    for write in settings.write:
        for chosen in write.from_:
            name = chosen.partition(":")[0]
            if name != "*" and name not in names:
                message = f"from names {name}, which is no [[source]] of this file; is it one of the desk?"
                yield CheckResult("settings", f"write {write.folder}", "warning", message)
