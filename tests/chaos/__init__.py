"""Chaos: real processes, real signals, a real database, and a checker that only looks afterwards.

A *storm* runs many *schedules* on one small deployment (two control planes behind a proxy, a few
workers, one PostgreSQL). Each schedule enqueues jobs and lets loose faults drawn from its seed;
nothing is asserted inside. When all jobs are over, the checker reads what the database, the control
planes and the workers wrote down, and judges.
"""
