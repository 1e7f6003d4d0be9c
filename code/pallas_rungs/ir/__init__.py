"""Reading what the compilers write: modules and listings as data."""
