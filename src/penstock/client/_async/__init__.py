"""The asynchronous client, from which `tools.generate` writes the synchronous one."""
