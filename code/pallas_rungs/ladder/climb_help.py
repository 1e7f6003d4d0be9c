"""What `climb --help` says beyond its options: a file's own cases, tolerances, words, JSON."""

CLIMB_HELP = """
cases
  inputs() returns one tuple of arguments. SYMBOL_cases() or cases() returns several: a dict from
  name to tuple, or a list of tuples, of (name, tuple), or of objects with .args (and .kwargs,
  .name, .rtol, .atol).
  The reference is called as SYMBOL is. An argument by name that it has no parameter for, such as
  block=128, goes to SYMBOL alone, and the report says so.

tolerance
  A value agrees where |got - want| <= atol + rtol * |want|; integers and booleans must be equal.
  They are --rtol and --atol, else those of the case, else RTOL and ATOL of the file. By default
  rtol follows from the narrowest float type that the program rounds to: 7.6e-6 for float32 (16
  times that where it takes exponentials), 3.1e-2 for bfloat16, 3.9e-3 for float16; and atol is
  that, a quarter of it for 16 bits, times the root mean square of the reference.

words of a report
  simulate default    the simulator as it is
  simulate races      with its race detector
  simulate two cores  on two cores, where a grid axis is parallel
  simulate eager      each copy made when it is started, not when it is waited for, where there are
                      copies: one that nobody waits for is seen only so
  (cached)            the compiler's outcome comes from the disk cache; --no-cache asks it again
  estimate 750 µs (740 to 760 µs), not a measurement
                      beside compile, for TPUs: what the program would take on that chip, by its
                      compiler's final schedule, and the times one usual error below and above.
                      It changes no verdict; --no-estimate leaves it out
  partly guessed      the schedule left something open, such as how often a loop runs
  error not known     such estimates were held against too few measured times on that chip, or none

json
  {"climbs": [CLIMB, ...], "passed": BOOL, "exit_code": INT}, for one target as for several
  CLIMB    target, passed, reports, printed_lines; and error, where it could not be tried
  report   format, name, passed, first_caught, versions, verdicts
  verdict  rung, status, target, summary, observed, error, difference, details, seconds, cached,
           rules
  details.estimate  chip, text, seconds, low, high, error, cycles, unresolved, prefetched_bytes,
                    method, versions
  Where a program compiled for a TPU and has no estimate, that holds only none: the reason.
  A usage error, found before anything is executed, is a line on the error output and no JSON.
"""
