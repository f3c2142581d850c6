"""Whether a task of local write can be carried out as the settings have it."""

from __future__ import annotations

from typing import Final

from indlet.errors import SettingsError
from indlet.exchange.subject_translation import subject_translation
from indlet.exchange.translate import format_named, own_table
from indlet.model import DUBLIN_CORE
from indlet.settings import Write

DELETIONS: Final = ("alert", "file", "remove")
_PLACES: Final = ("source", "year", "name", "set")


def check_task(task: Write) -> None:
    """SettingsError if a task cannot be carried out as it is written: unknown formats, missing tables."""
    if task.deletions not in DELETIONS:
        raise SettingsError(f"[[write]]: deletions is {task.deletions!r}; one of {', '.join(DELETIONS)}")
    for name, value, known_values in (
        ("files", task.files, ("record", "run")),
        ("duplicates", task.duplicates, ("write", "skip")),
    ):
        if value not in known_values:
            raise SettingsError(f"[[write]]: {name} is {value!r}; one of {', '.join(known_values)}")
    if task.files == "run" and task.deletions != "alert":
        raise SettingsError(
            '[[write]]: a file of many records stays; with files = "run" deletions is "alert"'
        )
    if unknown := set(task.required) - set(DUBLIN_CORE):
        known = ", ".join(DUBLIN_CORE)
        raise SettingsError(f"[[write]]: required names {', '.join(sorted(unknown))}; known are {known}")
    try:
        task.path.format(**dict.fromkeys(_PLACES, "x"))
    except (KeyError, IndexError, ValueError) as e:
        known = ", ".join(f"{{{place}}}" for place in _PLACES)
        raise SettingsError(f"[[write]]: path {task.path!r}: {e}; it may hold {known}") from e
    if "{name}" not in task.path:
        raise SettingsError(
            f"[[write]]: path {task.path!r} is the same for several records; add {{name}} to it"
        )
    metadata = format_named(task.format)
    if task.mapping:
        own_table(task.mapping, metadata)
    subject_translation(task.subjects, task.subject_method)
