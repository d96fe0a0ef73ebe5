"""How a metric is written, under the name by which reporting imports it."""

from jaxmeter.harness.metrics.write import *  # noqa: F403
