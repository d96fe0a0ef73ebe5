"""Where a run happens: in this environment, a container, or an environment that is made. It knows no metric."""
