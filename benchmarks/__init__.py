"""Our own figures, each from a command that anyone can run."""
