//! The exchange after both sides have agreed on a measurement: each side sends its load, if any, counts the data that arrives, and
//! reports.

use std::time::Duration;

use tokio::time::Instant;
use tresse::{Association, Joiner, Message, Part, SendOptions};

use super::load::delay;
use super::message::{CONTROL, Control, DATA, LONGEST_CONTROL, Load, ReceiverReport, SenderReport};
use super::tally::Tally;
use crate::call::{self, breach};
use crate::failure::Failure;

/// The reports of both ends on one direction.
pub(super) struct Flow {
    pub(super) sent: SenderReport,
    pub(super) got: ReceiverReport,
}

/// Runs a measurement to its end. Returns the reports on the direction that this side sends and on the one that it receives, if any.
///
/// # Errors
/// The association ended, or the peer violates the protocol.
pub(super) async fn exchange(
    receiver: &mut DataReceiver<'_>,
    load: &Load,
    (sends, receives): (bool, bool),
) -> Result<(Option<Flow>, Option<Flow>), Failure> {
    let (association, tally) = (receiver.association, receiver.tally);
    let sending = async {
        if !sends {
            return Ok(None);
        }
        let sent = load.send(association, tally).await?;
        put(association, Control::Sent(sent.clone())).await?;
        Ok(Some(sent))
    };
    let (sent, (got, received)) =
        tokio::try_join!(sending, receiver.receive_reports((sends, receives), load.is_timed()))?;
    Ok((sent.zip(got).map(|(sent, got)| Flow { sent, got }), received))
}

/// Receiver of everything that the peer sends.
pub(super) struct DataReceiver<'a> {
    association: &'a Association,
    joiner: Joiner,
    tally: &'a Tally,
    /// Highest rate in bits a second, and the time from which it holds.
    pace: Option<(u64, Instant)>,
}

enum Received {
    Control(Control),
    Data,
}

impl<'a> DataReceiver<'a> {
    /// Creates a receiver that counts data in `tally`.
    pub(super) fn new(association: &'a Association, tally: &'a Tally) -> Self {
        DataReceiver { association, joiner: Joiner::default(), tally, pace: None }
    }

    /// Returns the receiver with `rate` as its highest rate, in bits a second.
    pub(super) fn reading_at(self, rate: Option<u64>) -> Self {
        DataReceiver { pace: rate.map(|rate| (rate, Instant::now())), ..self }
    }

    /// Waits until the client has all reports. Data of a timed load that still arrives is not reported any more.
    pub(super) async fn until_done(&mut self) -> Result<(), Failure> {
        loop {
            match self.next().await? {
                Received::Control(Control::Done) => return Ok(()),
                Received::Data => {}
                Received::Control(_) => return Err(breach("a message out of turn")),
            }
        }
    }

    /// Waits for the next control message. If this side `receives`, data on other streams and paths may overtake the message.
    pub(super) async fn control(&mut self, receives: bool) -> Result<Control, Failure> {
        loop {
            match self.next().await? {
                Received::Control(control) => return Ok(control),
                Received::Data if receives => {}
                Received::Data => return Err(breach("data out of turn")),
            }
        }
    }

    /// Receives until the peer has reported on what this side `sends`, and this side has all that it `receives`. Of a `timed` load, the
    /// data that has arrived when the sender's report arrives is enough.
    async fn receive_reports(
        &mut self,
        (sends, receives): (bool, bool),
        timed: bool,
    ) -> Result<(Option<ReceiverReport>, Option<Flow>), Failure> {
        let (mut announced, mut received, mut got) = (None::<SenderReport>, None, None);
        loop {
            // The sender's report, on stream 0, may have overtaken data on other streams.
            if let Some(sent) = announced.take_if(|sent| timed || self.tally.all_bytes() >= sent.bytes) {
                let got = self.tally.got();
                put(self.association, Control::Got(got.clone())).await?;
                received = Some(Flow { sent, got });
            }
            if got.is_some() == sends && received.is_some() == receives {
                return Ok((got, received));
            }
            match self.next().await? {
                Received::Data if receives && (timed || received.is_none()) => {}
                Received::Control(Control::Sent(sent)) if receives && received.is_none() => {
                    announced = Some(sent);
                }
                Received::Control(Control::Got(account)) if sends && got.is_none() => got = Some(account),
                _ => return Err(breach("a message out of turn")),
            }
        }
    }

    async fn next(&mut self) -> Result<Received, Failure> {
        loop {
            let Some(message) = self.association.recv().await? else {
                return Err(Failure::running("the peer ended the association before the measurement ended"));
            };
            match message.ppid {
                DATA => {
                    self.count(&message);
                    if let Some((rate, since)) = self.pace {
                        let due = self.tally.all_bytes() as f64 * 8.0 / rate as f64;
                        tokio::time::sleep_until(since + Duration::from_secs_f64(due)).await;
                    }
                    return Ok(Received::Data);
                }
                CONTROL => {
                    if let Some(whole) = self.joiner.join(message) {
                        let control = Control::decode(&whole.payload.into_bytes());
                        return control.map(Received::Control).map_err(|error| breach(&error));
                    }
                    if self.joiner.held() > LONGEST_CONTROL {
                        return Err(breach("a control message longer than any"));
                    }
                }
                _ => return Err(breach("a message of unknown kind")),
            }
        }
    }

    fn count(&self, message: &Message) {
        let completes = matches!(message.part, Part::Whole | Part::Last);
        let head = message.payload.pieces().first().filter(|_| message.part == Part::Whole);
        self.tally.add(
            message.stream,
            message.payload.len() as u64,
            completes,
            head.and_then(|head| delay(head)),
        );
    }
}

/// Sends a control message.
pub(super) async fn put(association: &Association, control: Control) -> Result<(), Failure> {
    let bytes = control.encode().map_err(Failure::running)?;
    call::put(association, SendOptions::default().with(|o| o.ppid = CONTROL), bytes).await
}
