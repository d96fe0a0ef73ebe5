"""The number format of documents, under the name by which reporting imports it."""

from jaxmeter.document.numbers import *  # noqa: F403
