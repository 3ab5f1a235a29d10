//! Common part of both people: the setup of their transport, the purpose of each stream, and the format of a message.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tresse::{AssociationConfig, Bytes, ConfigError, StreamId};

/// Streams of the association.
pub(crate) const MESSAGES: StreamId = StreamId(0);
pub(crate) const PHOTO: StreamId = StreamId(1);

/// One path, and the buffers of a Linux host of 2010, as scenarios/infocom2011/dumbbell.toml has them.
pub(crate) fn settings() -> Result<AssociationConfig, ConfigError> {
    let mut settings = AssociationConfig::preset("rfc9260")?;
    for (name, value) in [("outbound_streams", "2"), ("send_buffer", "93KiB"), ("receive_buffer", "61KiB")] {
        settings.set(name, value)?;
    }
    Ok(settings)
}

/// A message carries the time at which somebody thought of it. Both people are on one host, so they share its clock.
pub(crate) fn message(text: &str) -> Bytes {
    [&since_epoch().as_nanos().to_be_bytes()[..], text.as_bytes()].concat().into()
}

/// How old a message is, and its text; `None` for what is no message.
pub(crate) fn read(message: &[u8]) -> Option<(Duration, String)> {
    let (time, text) = message.split_at_checked(TIME)?;
    let nanos = u128::from_be_bytes(time.try_into().ok()?);
    let age = since_epoch().as_nanos().saturating_sub(nanos);
    let age = Duration::from_nanos(u64::try_from(age).ok()?);
    Some((age, String::from_utf8_lossy(text).into_owned()))
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Bytes of a time.
const TIME: usize = 16;
