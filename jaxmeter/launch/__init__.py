"""jaxmeter's launcher: where a run happens. Standard library only, so that a bare host can run it."""
