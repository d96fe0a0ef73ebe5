"""Reads a file that a run keeps beside its numbers, if it is what the record says."""

from __future__ import annotations

import hashlib

from jaxmeter.harness.record import Artifact, RunFolder, UnreadableError
from jaxmeter.harness.record.files import LARGEST_RECORD, read_kept


class ArtifactError(Exception):
    """A kept file cannot be used; the message names it and says why."""


def read_text(folder: RunFolder, case_id: str, artifact: Artifact) -> str:
    """The text of a case's artifact.

    Raises:
      ArtifactError: As `read_file`.
    """
    return read_file(folder, case_id, artifact).decode("utf-8", "replace")


def read_file(folder: RunFolder, case_id: str, artifact: Artifact) -> bytes:
    """What is in a case's artifact.

    Raises:
      ArtifactError: Its path leads out of the case's folder, nothing can be read there, or it is another file.
    """
    case = folder.case(case_id).path
    path = case / artifact.path
    try:
        # A record is only a file: it may name any place.
        if case.resolve().parent != folder.cases.resolve() or not path.resolve().is_relative_to(case.resolve()):
            raise ArtifactError(f"its path {artifact.path!r} leads out of the case's folder")
        if not path.is_file():
            raise ArtifactError(f"no file {artifact.path!r}")
        data = read_kept(path.resolve(), LARGEST_RECORD)
    except (OSError, ValueError, RuntimeError, UnreadableError) as error:
        raise ArtifactError(f"{artifact.path!r} cannot be read: {error}") from error
    if hashlib.sha256(data).hexdigest() != artifact.sha256:
        raise ArtifactError(f"{artifact.path!r} is not what was recorded (another SHA-256)")
    return data
