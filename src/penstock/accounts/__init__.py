"""Who there is, and what shows that it is them: users, API keys, and the tokens of our own
processes."""
