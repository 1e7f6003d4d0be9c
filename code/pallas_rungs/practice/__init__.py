"""Exercises: each has a starter, a check, a solution that passes and slips that do not."""
