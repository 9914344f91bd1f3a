"""Planning on the workers of a Dask scheduler, by the code and the stack files of this machine."""
