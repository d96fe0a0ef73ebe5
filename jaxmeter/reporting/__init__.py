"""What recorded runs mean: loads run folders, builds one view of them, and renders it. Runs without JAX."""
