"""The graph server's HTTP edge: the application, who may call it, body limits, error answers, and
the routes about the server itself. Queries and algorithms have their routes in packages of theirs.
"""
