"""Where data rests: local folders, S3 and GCS behind one contract, and the Parquet that is kept
there."""
