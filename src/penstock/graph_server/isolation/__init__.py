"""What the processes of a graph server give up, by the kernel, before they meet a query.

`isolation.py` decides for each process; `permissions.py` applies it, with Landlock, seccomp and
resource limits; `unprivileged_user.py` leaves root; `confined_program.py` starts a program of
somebody else's within the same limits. Nothing here knows graphs or HTTP.
"""
