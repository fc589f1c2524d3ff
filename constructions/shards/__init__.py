"""Work in shards: on processes of this machine, or on a cluster of dask.distributed, with results that stay."""
