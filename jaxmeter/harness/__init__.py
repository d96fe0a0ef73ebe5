"""How it is measured: declared workloads become processes, whose probes write a record."""
