"""Figures of cases and suites: a file for each subject. They read numbers, and make data for a renderer."""
