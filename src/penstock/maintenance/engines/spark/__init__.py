"""Maintenance on Spark, over HiveServer2 (Spark's Thrift server, Kyuubi) or Spark Connect."""
