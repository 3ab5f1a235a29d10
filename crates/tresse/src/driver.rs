//! Driver task of an endpoint: the loop of the core around real sockets.
//!
//! Each round reads the sockets, serves due timers, answers key messages, polls for packets until there are none,
//! publishes the other events, and sleeps until the deadline. The lock is not held while sockets are read and written.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::time::Sleep;
use tresse_proto::{DriverLoad, Instant, Moderation};

use crate::drivers::Siblings;
use crate::shared::{Shared, State};
use crate::transport::{DriverBuffers, Sockets, with_room};

pub(crate) struct Driver {
    shared: Arc<Shared>,
    siblings: Arc<Siblings>,
    sockets: Sockets,
    moderation: Moderation,
    sleep: Pin<Box<Sleep>>,
    /// Time to which `sleep` is set.
    alarm: Option<Instant>,
    faults: u64,
}

/// Step that follows a round.
enum Next {
    /// Another round follows: there is more to send, or there was an input meanwhile.
    Again,
    /// Nothing is due before this time, unless there is an input.
    Wait(Option<Instant>),
    /// The driver ends.
    Finish,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>, siblings: Arc<Siblings>, sockets: Sockets) -> Self {
        Driver {
            shared,
            siblings,
            sockets,
            moderation: Moderation::new(),
            sleep: Box::pin(tokio::time::sleep(std::time::Duration::ZERO)),
            alarm: None,
            faults: 0,
        }
    }

    /// Runs rounds until there is nothing to do, or other tasks are to run.
    fn work(&mut self, cx: &mut Context<'_>, room: &mut DriverBuffers) -> Poll<()> {
        for _ in 0..TURNS {
            if self.sockets.is_polled() && self.moderation.is_due(self.shared.now()) {
                self.sockets.poll_again();
            }
            let arrived = self.sockets.poll_receive(cx, &mut room.buffers, &mut room.inbox).is_ready();
            self.siblings.hand_on(self.shared.number, &mut room.inbox);
            let more = self.turn(room);
            let unasked = self.sockets.send(&room.batch);
            let flushed = self.sockets.poll_flush(cx).is_ready();
            match self.settle(cx, more || unasked) {
                Next::Again => {}
                Next::Finish => return if flushed { Poll::Ready(()) } else { Poll::Pending },
                Next::Wait(alarm) => {
                    if !arrived && self.poll_wait(cx, alarm).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
        // There is more to do.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Passes all inputs to the core and its packets to the batch; returns whether another round is needed.
    fn turn(&mut self, room: &mut DriverBuffers) -> bool {
        // These sockets are closed after the lock is released.
        let mut closing = Vec::new();
        let mut guard = self.shared.lock();
        let state: &mut State = &mut guard;
        let now = self.shared.now();
        state.set_clock(now);
        room.batch.clear();
        state.note_commands();
        let joining = state.take_joining();
        // A new socket wakes the driver only after it has been polled, so another round follows.
        let joined = !joining.is_empty();
        joining.into_iter().for_each(|socket| self.sockets.join(socket));
        // After adding sockets: an address cannot be bound again before its former sockets are closed.
        closing.extend(state.take_leaving().into_iter().flat_map(|local| self.sockets.leave(local)));
        state.take_handed(&mut room.inbox);
        state.tap_arrivals(now, &room.inbox);
        let mut arrivals = DriverLoad { packets: room.inbox.len(), ..DriverLoad::default() };
        for datagram in room.inbox.drain(..) {
            arrivals.bytes += datagram.payload.len();
            state.core.handle_datagram(now, datagram);
        }
        state.handle_timeout(now);
        self.shared.dispatch_keys(state, now);
        let more = room.batch.fill(&mut state.core, now);
        state.tap_departures(now, &room.batch);
        let load = DriverLoad { sent: room.batch.bytes(), ..arrivals };
        self.moderation.on_round(load, state.core.template().receive_buffer.0);
        let faults = self.sockets.faults();
        if faults != self.faults {
            self.faults = faults;
            state.locals = self.sockets.stats();
        }
        more || joined
    }

    /// Publishes the events, after the packets before them have left. Returns the next step.
    fn settle(&mut self, cx: &Context<'_>, more: bool) -> Next {
        let mut guard = self.shared.lock();
        let state: &mut State = &mut guard;
        self.shared.dispatch(state, self.shared.now());
        if more || state.is_touched() {
            return Next::Again;
        }
        state.set_driver(cx.waker());
        let (finished, alarm) = (state.is_finished(), state.poll_timeout());
        drop(guard);
        if finished && self.siblings.finish(self.shared.number) {
            return Next::Finish;
        }
        Next::Wait(alarm)
    }

    /// Ready when `alarm` is reached, or the sockets are to be polled.
    fn poll_wait(&mut self, cx: &mut Context<'_>, alarm: Option<Instant>) -> Poll<()> {
        let now = self.shared.now();
        let mut poll = if Sockets::CAN_BE_POLLED { self.moderation.next_poll(now) } else { None };
        if poll.is_some() {
            self.sockets.deregister();
        } else if self.sockets.is_polled() {
            if self.sockets.register() {
                return Poll::Ready(());
            }
            poll = Some(self.moderation.poll_after(now));
        }
        self.poll_alarm(cx, alarm.into_iter().chain(poll).min())
    }

    /// Ready when `alarm` is reached.
    fn poll_alarm(&mut self, cx: &mut Context<'_>, alarm: Option<Instant>) -> Poll<()> {
        let Some(at) = alarm else { return Poll::Pending };
        if self.alarm != alarm {
            self.sleep.as_mut().reset(self.shared.system_time(at));
            self.alarm = alarm;
        }
        ready!(self.sleep.as_mut().poll(cx));
        // The timer may expire slightly early, or before a deadline beyond its longest sleep: it is set again.
        self.alarm = None;
        Poll::Ready(())
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = self.get_mut();
        with_room(|room| driver.work(cx, room))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.on_driver_gone();
    }
}

/// Rounds before other tasks of the runtime run.
const TURNS: u32 = 16;
