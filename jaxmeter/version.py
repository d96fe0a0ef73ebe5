"""The version of jaxmeter, recorded in every run."""

__version__ = "0.1.0"
