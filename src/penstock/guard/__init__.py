"""What may pass: read-only SQL, outbound URLs, object keys. Pure, deny by default, tried with
hostile corpora."""
