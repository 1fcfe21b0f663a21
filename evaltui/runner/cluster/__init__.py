"""A run on a cluster: Dask's distributed scheduler says which machine works, hosts on it run the cases."""
