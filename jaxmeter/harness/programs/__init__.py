"""From a function to a program: modes, texts, counts, cost, buffers, caches."""
