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
    """Return what to install, if an import failed for lack of an optional package; else empty."""
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return f"{name} is not installed: pip install 'jaxmeter[{EXTRAS[name]}]'" if name in EXTRAS else ""
