"""What a graph server exchanges with its control plane: the mapping to load, progress and status
of the start, then memory, queries and activity.
"""
