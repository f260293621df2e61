"""Who calls: credentials, sessions, sign-in, addresses, and how much one caller may send."""
