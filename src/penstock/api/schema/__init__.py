"""The OpenAPI document and the envelope of answers."""
