"""What is profiled: one file a subject. A suite declares workloads and never measures."""
