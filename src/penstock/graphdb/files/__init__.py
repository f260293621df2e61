"""The Parquet and Arrow files that engines load from and algorithms read.

They are made to fit an engine, and examined for the reason when a load fails.
"""
