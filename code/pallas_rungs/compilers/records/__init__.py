"""What a compiler says, or what it said when this folder's records were made."""

from pallas_rungs.compilers.records.live import (
    RENEW,
    Known,
    RecordError,
    live_or_recorded,
    recorded,
)

__all__ = ["RENEW", "Known", "RecordError", "live_or_recorded", "recorded"]
