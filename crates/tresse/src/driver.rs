//! Driver task of an endpoint: the loop of the core around real sockets.
//!
//! Take what arrived, let due timers fire, answer key messages, poll for packets until there are none, hand out
//! the other events, sleep until the deadline. Sockets are read and written outside the lock.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::time::Sleep;
use tresse_proto::{DriverLoad, Instant, Moderation};

use crate::shared::{Shared, State};
use crate::transport::{DriverBuffers, Sockets, with_room};

pub(crate) struct Driver {
    shared: Arc<Shared>,
    sockets: Sockets,
    moderation: Moderation,
    sleep: Pin<Box<Sleep>>,
    /// Instant that `sleep` is set to.
    alarm: Option<Instant>,
    faults: u64,
}

/// Step that follows a round.
enum Next {
    /// There is more to send, or something happened meanwhile.
    Again,
    /// Nothing before this point, unless something happens.
    Wait(Option<Instant>),
    /// Nothing ever again.
    Finish,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>, sockets: Sockets) -> Self {
        Driver {
            shared,
            sockets,
            moderation: Moderation::new(),
            sleep: Box::pin(tokio::time::sleep(std::time::Duration::ZERO)),
            alarm: None,
            faults: 0,
        }
    }

    /// Rounds until there is nothing to do, or others shall have their turn.
    fn work(&mut self, cx: &mut Context<'_>, room: &mut DriverBuffers) -> Poll<()> {
        for _ in 0..TURNS {
            if self.sockets.is_polled() && self.moderation.is_due(self.shared.now()) {
                self.sockets.poll_again();
            }
            let arrived = self.sockets.poll_receive(cx, &mut room.buffers, &mut room.inbox).is_ready();
            self.shared.group.hand_on(self.shared.number, &mut room.inbox);
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

    /// Tells the core what happened and takes its packets into the batch; returns whether there are more.
    fn turn(&mut self, room: &mut DriverBuffers) -> bool {
        // They are closed once the lock is free.
        let mut closing = Vec::new();
        let mut guard = self.shared.lock();
        let state: &mut State = &mut guard;
        let now = self.shared.now();
        state.set_clock(now);
        room.batch.clear();
        state.note_commands();
        let joining = state.take_joining();
        // A socket wakes nobody before it has been asked.
        let joined = !joining.is_empty();
        joining.into_iter().for_each(|socket| self.sockets.join(socket));
        // After those that join: an address cannot be bound again before its sockets are closed.
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

    /// Hands out the events, now that the packets before them have left.
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
        if finished && self.shared.group.finish(self.shared.number) {
            return Next::Finish;
        }
        Next::Wait(alarm)
    }

    /// Ready when `alarm` is reached, or it is time to poll the sockets.
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
            self.sleep.as_mut().reset(self.shared.system_time(at).into());
            self.alarm = alarm;
        }
        ready!(self.sleep.as_mut().poll(cx));
        // The timer may be an instant early, or the deadline more than its longest sleep away: set it anew.
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

/// Rounds before other tasks of the runtime have their turn.
const TURNS: u32 = 16;
