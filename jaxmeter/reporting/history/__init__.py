"""Many runs of one machine: the series of each number, where it changed for good, and what may be the cause."""
