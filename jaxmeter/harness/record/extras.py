"""Packages that not every installation has, and the extra of jaxmeter that brings each."""

from __future__ import annotations

EXTRAS = {
    **dict.fromkeys(("pandas", "jinja2", "markupsafe", "fsspec", "resvg_py"), "report"),
    **dict.fromkeys(("flax", "optax"), "suites"),
    "xprof": "viewer",
    "matplotlib": "plot",
    "pyarrow": "parquet",
    "s3fs": "s3",
    "gcsfs": "gcs",
}
"""By the name that is imported."""


def describe_missing(error: BaseException | None) -> str:
    """Return what to install, if an import failed for lack of an optional package; else empty.

    Args:
      error: The error of the import, or the error that a library raised from it.
    """
    for each in (error, None if error is None else error.__cause__):
        name = (each.name or "").partition(".")[0] if isinstance(each, ModuleNotFoundError) else ""
        if name in EXTRAS:
            return f"{name} is not installed: pip install 'jaxmeter[{EXTRAS[name]}]'"
    return ""
