"""Exercises, one module each: a starter, a check, a solution that passes, mistakes that do not.

An exercise holds ``starter``, ``solution``, ``check`` and ``WRONG``: pairs of a plausible wrong
solution and a pattern that the check's message must match for it. ``check`` takes the reader's
own function and raises an `AssertionError` that says what is wrong; `judging` has what checks
share.
"""
