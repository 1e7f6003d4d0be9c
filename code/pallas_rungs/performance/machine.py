"""What a scalar program runs on: its memory, its semaphores, its DMAs, and the time that passes."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pallas_rungs.performance.clock import Clock
from pallas_rungs.performance.dma import DmaEngine, Semaphores

ALLOCATION_BITS: Final = 18
"""Addresses of an allocation: `[#allocation3]` stands for the third multiple of 2^18."""

_OPERAND_BITS: Final = 20
_POINTER_BITS: Final = 4
"""Some pointers for a DMA are addresses shifted by so much."""

MOST_BLOCKS: Final = 10_000_000
"""Blocks that are executed before a program counts as one that does not end."""

MOST_BLOCKS_AFTER_A_GUESS: Final = 2_000_000
"""The same where a value had to be guessed, on which the end may hang."""


def _mixed(reading: int, name: str) -> int:
    """Return zero at every other reading or so, and else a number with bits in each of its bytes.

    What reads a truth value, or some bits of a word, sees no change among numbers that are all
    small, large or negative; nor do two guesses that are compared where they go hand in hand.
    """
    word = zlib.crc32(f"{name} {reading}".encode())
    return 0 if word & 0x1000 else word - ((word & 0x80000000) << 1)


Variation = Callable[[int, str], int]


def constant(value: int) -> Variation:
    """Return the variation that is the same value at each reading: one that a program tests for."""
    return lambda *_: value


VARIATIONS: Final[tuple[Variation, ...]] = (
    lambda reading, _: 2 + reading % 5,
    lambda reading, _: (1 << 20) + reading,
    lambda reading, _: -reading,
    _mixed,
)
"""Other values for what is guessed, by the number of the reading and the name of what is guessed:
small, large and negative ones, and mixed ones. A guess is told where one of them changes the run.
"""

OPERAND_VALUES: Final = "values of operand"
BROUGHT: Final = "values that a DMA brought to SMEM"
"""What is not known because it comes from the program's inputs or from another program."""

_AT_ONCE: Final = 20_000
_WORD: Final = 4
"""Bytes of a word of SMEM."""


def address_of_operand(index: int) -> int:
    """Return a made-up address for an operand: negative, and odd, so that a shift shows."""
    return -((index + 1) << _OPERAND_BITS) + 1


def operand_at(address: int) -> int | None:
    """Return the operand that begins at an address or at a shifted one; None where none does."""
    if address < 0 and address & 1:
        index = -((address - 1) >> _OPERAND_BITS) - 1
        return index if address_of_operand(index) == address else None
    if address < 0 and address & ((1 << _POINTER_BITS) - 1) == 0:
        return operand_at(address >> _POINTER_BITS)
    return None


Call = Callable[["Machine", str, float], float]
"""Runs another program: takes the machine, the program's name, the cycle; returns the cycle."""


@dataclass
class Machine:
    """The state of one run.

    Attributes:
      clock: the chip's constants.
      blocks: how many blocks the program has.
      operands: words in SMEM of the operands whose values are known, by their index.
      dma: the DMA engine; of the calling program where there is one.
      call: what `inlined_call` does; None counts it and lets no time pass.
      core: which of the chip's cores it is.
      guess: the value taken for what is not known.
      varied: names of what is not known and is taken to be another value at each reading.
      variation: the value of the n-th reading of such a name.
      time: the cycle.
      counts: how often each block was executed.
      stalls: cycles lost to waiting, by the address of the bundle that waits.
      unresolved: what had to be guessed, by name, and how often.
      called: names of the programs called, and how often.
      endless: whether the run was given up.
    """

    clock: Clock
    blocks: int
    operands: Mapping[int, Sequence[int]] = field(default_factory=dict)
    dma: DmaEngine | None = None
    call: Call | None = None
    core: int = 0
    guess: int = 0
    varied: frozenset[str] = frozenset()
    variation: Variation = VARIATIONS[0]
    time: float = 0.0
    most_blocks: int = MOST_BLOCKS
    counts: list[int] = field(init=False)
    stalls: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    unresolved: Counter[str] = field(default_factory=Counter)
    called: Counter[str] = field(default_factory=Counter)
    endless: bool = False
    semaphores: Semaphores = field(default_factory=Semaphores)

    def __post_init__(self) -> None:
        self.engine = self.dma or DmaEngine(self.clock)
        self.counts = [0] * self.blocks
        self._memory: dict[int, int] = {}
        self._filled: dict[int, str] = {}
        self._allowed = 0

    def more(self) -> int:
        """Return how many blocks may be executed before this is asked again; 0 ends the run."""
        guessed = any(self.unresolved.values())
        most = min(self.most_blocks, MOST_BLOCKS_AFTER_A_GUESS) if guessed else self.most_blocks
        if self._allowed >= most:
            self.endless = True
            return 0
        more = min(_AT_ONCE, most - self._allowed)
        self._allowed += more
        return more

    def unknown(self, what: str) -> int:
        """Guess a value, and note that it was guessed."""
        self.unresolved[what] += 1
        if what not in self.varied:
            return self.guess
        return self.variation(self.unresolved[what], what)

    def load(self, address: int, name: str) -> int:
        """Return a word of SMEM."""
        try:
            return self._memory[address]
        except KeyError:
            base = address & -(1 << ALLOCATION_BITS)
            return self.unknown(self._filled.get(base) or self._filled.get(address) or name)

    def store(self, address: int, value: int) -> None:
        """Write a word of SMEM."""
        self._memory[address] = value

    def operand(self, index: int, space: str, what: str) -> int:
        """Return an operand of the program: its address, or the value of one without a memory."""
        known = self.operands.get(index)
        if space.startswith("<"):
            return int(known[0]) if known is not None else self.unknown(what)
        base = address_of_operand(index)
        if space == "smem":
            if known is None:
                self._filled[base] = what
            else:
                for place, value in enumerate(known):
                    self._memory[base + place] = int(value)
        return base

    def start(
        self, now: float, spaces: tuple[str, str], granules: int, places: tuple[int, int], flag: int
    ) -> None:
        """Start a DMA.

        Args:
          now: the cycle.
          spaces: the memories that it reads and writes.
          granules: its size.
          places: the addresses that it reads and writes.
          flag: the semaphore that it raises when it is done.
        """
        done = self.engine.start(now, *spaces, granules)
        self.semaphores.will_rise(flag, done, granules)
        if spaces[1] == "smem":
            self._fill(*places, granules * int(self.clock.granule.value) // _WORD)

    def _fill(self, source: int, target: int, size: int) -> None:
        """Copy the first words of an operand to SMEM, where it is one whose values are known.

        What was there before is gone, also where nothing is known of what comes: what addresses
        count differs from chip to chip, so that a later part of an operand is not known.
        """
        index = operand_at(source)
        known = self.operands.get(index) if index is not None else None
        for place in range(size):
            self._memory.pop(target + place, None)
        if known is not None:
            for place, value in enumerate(known[:size]):
                self._memory[target + place] = int(value)
            return
        what = BROUGHT if index is None else f"{OPERAND_VALUES} {index}"
        self._filled[target & -(1 << ALLOCATION_BITS)] = what

    def wait(self, now: float, flag: int, at_least: int, bundle: int) -> float:
        """Wait for a semaphore; return the cycle when it is there."""
        end, reached = self.semaphores.reached(now, flag, at_least)
        if not reached:
            self.unresolved[f"the wait at bundle {bundle:#x}, which no transfer satisfies"] += 1
        if end > now:
            self.stalls[bundle] += end - now
        return end

    def count(self, now: float, flag: int) -> int:
        """Return what a semaphore counts."""
        return self.semaphores.count(now, flag)

    def add(self, flag: int, amount: int) -> None:
        """Raise a semaphore, or lower it."""
        self.semaphores.add(flag, amount)

    def set(self, flag: int, value: int) -> None:
        """Set a semaphore."""
        self.semaphores.set(flag, value)

    def run_called(self, now: float, name: str) -> float:
        """Run a program that this one calls; return the cycle when it is done."""
        self.called[name] += 1
        return now if self.call is None else self.call(self, name, now)

    @property
    def stalled(self) -> float:
        """Cycles lost to waiting."""
        return sum(self.stalls.values())
