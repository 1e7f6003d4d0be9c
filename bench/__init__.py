"""What the book costs: seconds of its builds, memory of its compiler, weight of its pages.

    make bench                       everything; results in records/bench.json
    python -m bench --quick          a few minutes, once each, no growth; prints only
    python -m bench --only pages     one part: builds, growth, verdicts or pages

Nothing here is asserted: a time depends on the machine. `make test` asserts what must hold.
"""
