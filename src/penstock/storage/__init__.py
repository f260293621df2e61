"""Object storage: local folders, S3 and GCS behind one contract, and the Parquet written there."""
