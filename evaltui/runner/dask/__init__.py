"""A run on the workers of a Dask scheduler, whose hosts run the cases."""
