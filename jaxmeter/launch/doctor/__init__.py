"""What is fine on a machine, what spoils measurements, what to do: the rows and the verdict of `nox -s doctor`."""
