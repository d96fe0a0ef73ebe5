"""What jaxmeter reads of JAX's internals, by release. No jax."""

NEWEST_TESTED = "0.12.0.1"
