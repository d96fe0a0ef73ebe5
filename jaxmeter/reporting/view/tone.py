"""Tones of documents, under the name by which the view imports them."""

from jaxmeter.document.model import Tone

__all__ = ["Tone"]
