"""Short names of file formats: what people call a media type (`core/src/keys/media.rs`)."""

from indlet._core import file_format

__all__ = ["file_format"]
