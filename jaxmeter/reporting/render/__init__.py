"""One file an output: each places what the view says, and decides nothing."""
