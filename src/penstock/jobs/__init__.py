"""The fenced kernel: long work on PostgreSQL that is never lost, doubled or left half done."""
