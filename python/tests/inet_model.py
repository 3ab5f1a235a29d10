"""Discrete-event model of figure 4 of PFLDNeT 2010: two paths without loss, after the rules of the papers' simulator.

It shares no code with the stack, which is compared with it. Every message fills a packet. A rule that the paper leaves
unstated is a field of `Rules`, whose default is the simulator's. Times are nanoseconds, sizes bytes of user data unless
they say otherwise.
"""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

MESSAGE = 1452
PACKET = 1500
"""IP packet of one message: the MTU."""
SACK_PACKET = 20 + 12 + 20
"""IP packet of an NR-SACK without blocks; each block adds `SACK_BLOCK`."""
SACK_BLOCK = 4
COOKIE_ACK_PACKET, HEARTBEAT_PACKET = 36, 60
"""IP packets of a COOKIE ACK, and of a heartbeat or its answer."""
INITIAL_WINDOW = 4380
SILLY_WINDOW = 3000
SACK_FREQUENCY = 2
SACK_DELAY = 200_000_000
SECOND = 1_000_000_000
CONCURRENT = SECOND
"""How long data of one path makes gaps in that of the other nothing unusual."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules that the paper does not state."""

    path_order: Literal["primary_first", "turns"] = "primary_first"
    """Whether the first path sends all it may before the second one is asked, or they alternate packet by packet."""
    peer_window: Literal["at_sacks", "each_packet"] = "at_sacks"
    """When outstanding data is compared with the peer's window."""
    burst: int = 4
    """Most packets on a path at one instant; 0 for any number."""
    delayed_ack: bool = True
    """A SACK waits for the second packet although there are gaps (DAC)."""
    sack_path: Literal["first_data", "last_data", "round_robin", "primary"] = "first_data"
    """Path of a SACK; in turn: of those that brought data since the last one, the one that had none for longest."""
    sack_before_read: bool = True
    """A SACK is written before the application has read what the packet that triggered it made readable."""
    nr_sack: Literal["read", "in_sequence"] = "read"
    """Whether a message is non-renegable once the application has read it, or when it is the next of its stream."""
    least_window: int = SILLY_WINDOW
    """Less than this of the peer's window counts as none."""
    least_announced: int = SILLY_WINDOW
    """Less than this of the receive buffer is announced as none."""
    window_updates: Literal["never", "quarter"] = "never"
    """Whether reading that opens the window by a quarter of the buffer is reported at once."""
    gaps_may_wait: Literal["always", "while_concurrent"] = "always"
    """When DAC holds: always, or while data of both paths has come within `CONCURRENT`."""
    send_buffer: Literal["overshoots", "holds"] = "overshoots"
    """Whether a message is taken while any byte of the send buffer is free, or only if all of it fits."""
    send_at: Literal["each_message", "end_of_refill"] = "each_message"
    """Whether each message that the application gives is an opportunity to send, or all that it gives at a time."""
    unit: int = PACKET
    """Size of a full packet to congestion control and buffer splitting."""
    booked: int = MESSAGE
    """What a message counts in flight, in windows and in the receive buffer; in the send buffer it is user data."""
    initial_window: int = INITIAL_WINDOW
    """First congestion window."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Two paths, and one size for both buffers."""

    sigma: int
    fixed: bool
    """Stream i is sent on path i only; otherwise the streams take turns on all paths."""
    delays_ms: tuple[float, float] = (10, 10)
    rate_mbps: float = 10
    framing: int = 0
    """Bytes that each packet occupies on a link besides the IP packet."""
    queue: int = 100
    first_stream: int = 0
    """Stream that the application gives its first message to."""


_ACKED, _RELEASED = 2, 4
"""What became of a TSN: numbers above those of paths."""
_WAITING, _TAKEN = 1, 2
"""What the receiver holds of a TSN above the cumulative one."""


class Overflowed(Exception):  # noqa: N818 - it is a finding
    """A queue or a buffer overflowed: the model has no loss."""


class Link:
    """One direction of a path: a FIFO queue, a rate, a delay."""

    __slots__ = ("_busy_until", "_framing", "_leaving", "_ns_per_byte", "_queue", "delay")

    def __init__(self, setup: Setup, path: int) -> None:
        self._ns_per_byte = 8000 / setup.rate_mbps
        self.delay = int(setup.delays_ms[path] * 1_000_000)
        self._framing = setup.framing
        self._queue = setup.queue
        self._busy_until = 0
        self._leaving: deque[int] = deque()

    def carry(self, now: int, size: int) -> int:
        """Arrival time of an IP packet of `size` bytes that is sent now."""
        leaving = self._leaving
        while leaving and leaving[0] <= now:
            leaving.popleft()
        # One of them is on the wire.
        if len(leaving) > self._queue:
            raise Overflowed
        self._busy_until = max(self._busy_until, now) + round((size + self._framing) * self._ns_per_byte)
        leaving.append(self._busy_until)
        return self._busy_until + self.delay


class SenderPath:
    """Sender's state of a path."""

    __slots__ = ("burst", "burst_at", "cwnd", "outstanding", "partial", "queued")

    def __init__(self, window: int) -> None:
        self.cwnd = window
        self.partial = 0
        """Bytes acknowledged since the window grew last (congestion avoidance)."""
        self.outstanding = 0
        self.queued = 0
        """Bytes last sent here that the send buffer still keeps."""
        self.burst = 0
        """Packets sent at `burst_at`."""
        self.burst_at = -1


@dataclass(frozen=True, slots=True)
class Sack:
    """A SACK, as positions in the receiver's logs: nothing is lost or taken back, so it names all before them."""

    cumulative: int
    arrived: int
    """Length of the log of arrivals: gap-acknowledged."""
    taken: int
    """Length of the log of what the application has: non-renegably acknowledged."""
    a_rwnd: int


class Receiver:
    """The receiving side: its buffer, the order of streams, and when a SACK is due."""

    def __init__(self, model: "Model") -> None:
        self._model = model
        self._rules = model.rules
        self._buffer = model.setup.sigma
        self.arrived: list[int] = []
        self.taken: list[int] = []
        self._cumulative = -1
        self._above: set[int] = set()
        """What arrived above the cumulative TSN."""
        self._next = [0, 0]
        self._held: tuple[dict[int, int], dict[int, int]] = ({}, {})
        """By stream: what waits for an earlier message, by its number."""
        self._unread: list[int] = []
        """What the application may read."""
        self._packets = 0
        self._first = self._last = 0
        self._sources: list[int] = []
        """Paths that brought data since the last SACK."""
        self._last_sack = [-1, -1]
        self._last_at = self._concurrent_until = -CONCURRENT
        """When the last packet came, and until when data counts as coming over both paths."""
        self._timer = 0
        """Number of the SACK timer that counts; earlier ones were stopped."""
        self._announced = self._buffer
        self._confirmed = False
        self._kinds = bytearray(1)
        """By TSN plus 1: not above the cumulative TSN or missing, waiting, taken."""
        self._blocks = 0
        """Ranges of one kind above the cumulative TSN: blocks of a SACK."""

    def _set_kind(self, tsn: int, kind: int) -> None:
        kinds, at = self._kinds, tsn + 1
        kinds.extend(bytes(max(0, at + 2 - len(kinds))))
        before, old, after = kinds[at - 1 : at + 2]
        self._blocks -= (old not in (0, before)) + (after not in (0, old))
        self._blocks += (kind not in (0, before)) + (after not in (0, kind))
        kinds[at] = kind

    def _take(self, tsns: list[int]) -> None:
        """Messages become non-renegable."""
        self.taken += tsns
        for tsn in tsns:
            if tsn > self._cumulative:
                self._set_kind(tsn, _TAKEN)

    def on_data(self, now: int, path: int, tsn: int, stream: int, number: int) -> None:
        """A packet arrives."""
        self.arrived.append(tsn)
        in_order = not self._above and tsn == self._cumulative + 1
        self._above.add(tsn)
        self._set_kind(tsn, _WAITING)
        while self._cumulative + 1 in self._above:
            self._cumulative += 1
            self._above.remove(self._cumulative)
            self._set_kind(self._cumulative, 0)
        held = self._held[stream]
        held[number] = tsn
        if self._free() < 0:
            raise Overflowed
        readable = []
        while self._next[stream] in held:
            readable.append(held.pop(self._next[stream]))
            self._next[stream] += 1
        if self._rules.sack_before_read:
            self._unread += readable
            # What arrives at the same instant is processed before: its event is the older one.
            self._model.schedule(now, self._read, ())
        if not self._rules.sack_before_read or self._rules.nr_sack == "in_sequence":
            self._take(readable)
        self._model.on_delivered(now, len(readable))
        if self._packets == 0:
            self._first = path
            self._sources = []
        if path not in self._sources:
            self._sources.append(path)
        self._packets += 1
        if path != self._last:
            self._concurrent_until = self._last_at + CONCURRENT
        self._last, self._last_at = path, now
        waits = len(self.arrived) > 1 and (in_order or self._delays_gaps(now))
        if self._packets >= SACK_FREQUENCY or not waits or self._opens_window():
            self._report(now)
        else:
            self._timer += 1
            self._model.schedule(now + SACK_DELAY, self.on_timer, (self._timer,))

    def _read(self, now: int) -> None:
        """The application reads, after a SACK if one was due."""
        if self._rules.nr_sack == "read":
            self._take(self._unread)
        self._unread = []
        if self._opens_window():
            self._report(now)

    def _opens_window(self) -> bool:
        grown = self._free() - self._announced
        return self._rules.window_updates == "quarter" and 4 * grown >= self._buffer

    def _free(self) -> int:
        return self._buffer - self._rules.booked * (len(self._held[0]) + len(self._held[1]) + len(self._unread))

    def _delays_gaps(self, now: int) -> bool:
        return self._rules.delayed_ack and (self._rules.gaps_may_wait == "always" or now < self._concurrent_until)

    def on_heartbeat_answer(self, now: int) -> None:
        """The second path is confirmed."""
        self._confirmed = True

    def on_timer(self, now: int, number: int) -> None:
        """The SACK timer runs out."""
        if number == self._timer and self._packets:
            self._report(now)

    def _report(self, now: int) -> None:
        self._packets = 0
        self._timer += 1
        free = self._free()
        a_rwnd = self._announced = free if free >= self._rules.least_announced else 1
        # RFC 9260 section 5.4: nothing leaves on a path before it is confirmed.
        path = self._path() if self._confirmed else 0
        self._last_sack[path] = now
        self._model.send_sack(
            now,
            path,
            self._blocks,
            Sack(self._cumulative, len(self.arrived), len(self.taken), a_rwnd),
        )

    def _path(self) -> int:
        match self._rules.sack_path:
            case "first_data":
                return self._first
            case "last_data":
                return self._last
            case "primary":
                return 0
            case "round_robin":
                return min(self._sources, key=self._last_sack.__getitem__)


class Sender:
    """The sending side with its application, which is saturated."""

    def __init__(self, model: "Model") -> None:
        self._model = model
        self._rules = model.rules
        self._fixed = model.setup.fixed
        self._buffer = model.setup.sigma
        self._ssthresh = model.setup.sigma
        self.paths = (SenderPath(self._rules.initial_window), SenderPath(self._rules.initial_window))
        self._unsent = [0, 0]
        """Messages by stream that have no TSN yet."""
        self._numbers = [0, 0]
        self._held = 0
        """Bytes in the send buffer, sent or not."""
        self._stream_turn = 1
        self._path_turn = 1
        self._give_to = model.setup.first_stream
        self._sent: list[int] = []
        """By TSN: the path, or `_ACKED + path`, or `_RELEASED`."""
        self._cumulative = -1
        self._arrived = self._taken = 0
        """How much of the receiver's logs is known."""
        self._a_rwnd = self._buffer
        self._window_full = False

    def start(self, now: int) -> None:
        """The association is up: the first message of all is sent by itself."""
        self._give()
        self._send(now)
        self._refill(now)

    def on_sack(self, now: int, sack: Sack) -> None:
        """A SACK arrives; afterwards what it made room for is sent, and the application may refill the buffer."""
        if sack.cumulative < self._cumulative:
            # Stale: it says nothing, but is an opportunity to send.
            self._send(now)
            return
        before = [path.outstanding for path in self.paths]
        held = self._held
        self._acknowledge(sack)
        for path, flight in zip(self.paths, before, strict=True):
            self._grow(path, flight)
        self._a_rwnd = sack.a_rwnd
        self._window_full = self._is_window_full()
        if self._rules.send_at == "each_message":
            self._send(now)
        if self._held < held:
            self._refill(now)
        else:
            self._send(now)

    def _acknowledge(self, sack: Sack) -> None:
        log = self._model.receiver.arrived
        for tsn in log[self._arrived : sack.arrived]:
            self._take_out_of_flight(tsn)
        self._arrived = max(self._arrived, sack.arrived)
        for tsn in range(self._cumulative + 1, sack.cumulative + 1):
            self._release(tsn)
        self._cumulative = sack.cumulative
        for tsn in self._model.receiver.taken[self._taken : sack.taken]:
            self._release(tsn)
        self._taken = max(self._taken, sack.taken)

    def _take_out_of_flight(self, tsn: int) -> None:
        path = self._sent[tsn]
        if path < _ACKED:
            self.paths[path].outstanding -= self._rules.booked
            self._sent[tsn] = _ACKED + path

    def _release(self, tsn: int) -> None:
        self._take_out_of_flight(tsn)
        path = self._sent[tsn] - _ACKED
        if path < len(self.paths):
            self.paths[path].queued -= self._rules.booked
            self._held -= MESSAGE
            self._sent[tsn] = _RELEASED

    def _grow(self, path: SenderPath, flight_before: int) -> None:
        """Window growth. Without loss a path's earliest outstanding chunk is acknowledged first (CUCv2)."""
        acked = flight_before - path.outstanding
        if acked == 0:
            return
        if path.cwnd <= self._ssthresh:
            if flight_before >= path.cwnd:
                path.cwnd += min(self._rules.unit, acked)
        else:
            path.partial += acked
            if path.partial >= path.cwnd and flight_before >= path.cwnd:
                path.partial -= path.cwnd
                path.cwnd += self._rules.unit
        if path.outstanding == 0:
            path.partial = 0

    def _refill(self, now: int) -> None:
        """The application gives the streams messages in turn; each one is an opportunity to send."""
        size = 1 if self._rules.send_buffer == "overshoots" else MESSAGE
        while self._held + size <= self._buffer:
            self._give()
            if self._rules.send_at == "each_message":
                self._send(now)
        self._send(now)

    def _give(self) -> None:
        self._held += MESSAGE
        self._unsent[self._give_to] += 1
        self._give_to = 1 - self._give_to

    def _send(self, now: int) -> None:
        if self._rules.path_order == "primary_first":
            for path in range(len(self.paths)):
                while (stream := self._may_send(now, path)) is not None:
                    self._transmit(now, path, stream)
            return
        while True:
            for path in (1 - self._path_turn, self._path_turn):
                stream = self._may_send(now, path)
                if stream is not None:
                    self._transmit(now, path, stream)
                    self._path_turn = path
                    break
            else:
                return

    def _may_send(self, now: int, number: int) -> int | None:
        """The stream whose next message may leave on the path now."""
        path = self.paths[number]
        if path.outstanding >= path.cwnd:
            return None
        if self._rules.burst and path.burst_at == now and path.burst >= self._rules.burst:
            return None
        if self._rules.peer_window == "at_sacks":
            closed = self._window_full and path.outstanding > 0
        else:
            closed = self._is_window_full() and self._outstanding() > 0
        if closed or self._exceeds_share(path):
            return None
        return self._stream_for(number)

    def _exceeds_share(self, path: SenderPath) -> bool:
        """Buffer splitting, of both buffers."""
        paths = len(self.paths)
        booked = path.queued + self._rules.unit
        # Outstanding data is in the peer's window and in what is outstanding, so it cancels out.
        return booked * paths > self._buffer or booked * paths > self._a_rwnd

    def _is_window_full(self) -> bool:
        return self._a_rwnd - self._outstanding() < self._rules.least_window

    def _outstanding(self) -> int:
        return self.paths[0].outstanding + self.paths[1].outstanding

    def _stream_for(self, path: int) -> int | None:
        if self._fixed:
            return path if self._unsent[path] else None
        for stream in (1 - self._stream_turn, self._stream_turn):
            if self._unsent[stream]:
                return stream
        return None

    def _transmit(self, now: int, number: int, stream: int) -> None:
        path = self.paths[number]
        if path.burst_at != now:
            path.burst_at, path.burst = now, 0
        path.burst += 1
        path.outstanding += self._rules.booked
        path.queued += self._rules.booked
        self._unsent[stream] -= 1
        self._stream_turn = stream
        tsn = len(self._sent)
        self._sent.append(number)
        self._model.send_data(now, number, tsn, stream, self._numbers[stream])
        self._numbers[stream] += 1


class Model:
    """The whole: events in the order of time, and of their creation where times are the same."""

    def __init__(self, setup: Setup, rules: Rules | None = None) -> None:
        self.setup = setup
        self.rules = rules or Rules()
        self._events: list[tuple[int, int, Callable[..., None], tuple[object, ...]]] = []
        self._created = 0
        self._forth = [Link(setup, path) for path in range(2)]
        self._back = [Link(setup, path) for path in range(2)]
        self.receiver = Receiver(self)
        self.sender = Sender(self)
        self.sent: list[tuple[int, int, int]] = []
        """When, on which path, which TSN."""
        self._measured_from = 0
        self._delivered = 0

    def throughput_mbps(self, settle_s: float, measure_s: float) -> float:
        """User data that the application received per second after `settle_s`, in Mbit/s."""
        self._measured_from = round(settle_s * SECOND)
        end = self._measured_from + round(measure_s * SECOND)
        # INIT, INIT ACK and COOKIE ECHO have taken the first path; COOKIE ACK does, and the second path is probed.
        established = 3 * self._forth[0].delay
        self.schedule(self._back[1].carry(established, HEARTBEAT_PACKET), self._answer_heartbeat, ())
        self.schedule(self._back[0].carry(established, COOKIE_ACK_PACKET), self.sender.start, ())
        events = self._events
        while events and events[0][0] < end:
            now, _, act, arguments = heapq.heappop(events)
            act(now, *arguments)
        return self._delivered * MESSAGE * 8 / measure_s / 1e6

    def schedule(self, at: int, act: Callable[..., None], arguments: tuple[object, ...]) -> None:
        """Let something happen later."""
        self._created += 1
        heapq.heappush(self._events, (at, self._created, act, arguments))

    def send_data(self, now: int, path: int, tsn: int, stream: int, number: int) -> None:
        """A message leaves on a path."""
        self.sent.append((now, path, tsn))
        at = self._forth[path].carry(now, PACKET)
        self.schedule(at, self.receiver.on_data, (path, tsn, stream, number))

    def send_sack(self, now: int, path: int, blocks: int, sack: Sack) -> None:
        """A SACK with so many blocks leaves on a path."""
        at = self._back[path].carry(now, SACK_PACKET + SACK_BLOCK * blocks)
        self.schedule(at, self.sender.on_sack, (sack,))

    def _answer_heartbeat(self, now: int) -> None:
        self.schedule(self._forth[1].carry(now, HEARTBEAT_PACKET), self.receiver.on_heartbeat_answer, ())

    def on_delivered(self, now: int, messages: int) -> None:
        """The application has so many messages more."""
        if now >= self._measured_from:
            self._delivered += messages
