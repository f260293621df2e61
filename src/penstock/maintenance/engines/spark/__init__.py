"""Maintenance on a Spark: HiveServer2 (Spark's Thrift server, Kyuubi) and Spark Connect."""
