"""Reading and writing the region's state files so that a reader never sees half a file.

Every file under the region's folder that another process reads goes through here: it is written to a
temporary name in the same folder and renamed. A missing or (transiently) unreadable file reads as None.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any


def write_atomically(path: Path, content: str | bytes, mode: int = 0o600) -> None:
    """Write `content` to `path` in one step, with file mode `mode`; parents are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = content.encode() if isinstance(content, str) else content
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(raw)
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: Path, document: Any) -> None:
    """Write `document` as JSON, atomically."""
    write_atomically(path, json.dumps(document, indent=1) + "\n")


def read_json(path: Path) -> Any | None:
    """The document at `path`, or None where there is none."""
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None
