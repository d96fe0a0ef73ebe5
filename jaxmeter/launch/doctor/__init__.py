"""What is fine on a machine, what spoils measurements, what to do: rows and a verdict."""
