//! Alice: sends a photo as fast as it goes, says something now and then, and hears from Bob how long that took.

use std::error::Error;
use std::time::Duration;

use tokio::time::sleep;
use tresse::{Association, Bytes, SendOptions};

use crate::talk;

/// How long each message took.
#[derive(Clone, Debug)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    /// Of messages, at least one, in any order.
    pub(crate) fn new(mut latencies: Vec<Duration>) -> Self {
        latencies.sort_unstable();
        Latencies(latencies)
    }

    pub(crate) fn mean(&self) -> Duration {
        self.0.iter().sum::<Duration>() / self.0.len().max(1) as u32
    }

    pub(crate) fn median(&self) -> Duration {
        self.0.get(self.0.len() / 2).copied().unwrap_or_default()
    }

    pub(crate) fn worst(&self) -> Duration {
        self.0.last().copied().unwrap_or_default()
    }
}

/// Sends the photo, after `warm_up` also `messages`, one each `gap`, until Bob has got all of these.
pub(crate) async fn talk(
    association: &Association,
    warm_up: Duration,
    messages: usize,
    gap: Duration,
) -> Result<Latencies, Box<dyn Error>> {
    let photo = async {
        loop {
            let part = Bytes::from_static(&[0xff; PHOTO_PART]);
            if let Err(error) = association.send(SendOptions::on(talk::PHOTO), part).await {
                return error;
            }
        }
    };
    let speaking = async {
        sleep(warm_up).await;
        for number in 0..messages {
            let text = &SAYING[..1 + number % SAYING.len()];
            association.send(SendOptions::on(talk::MESSAGES), talk::message(text)).await?;
            sleep(gap).await;
        }
        Ok::<_, Box<dyn Error>>(())
    };
    let hearing = async {
        let mut latencies = Vec::new();
        while latencies.len() < messages {
            let Some(answer) = association.recv().await? else { return Err("Bob hung up".into()) };
            let nanos = answer.payload.into_bytes()[..].try_into().map(u128::from_be_bytes)?;
            latencies.push(Duration::from_nanos(u64::try_from(nanos)?));
        }
        Ok::<_, Box<dyn Error>>(latencies)
    };
    let both = async { tokio::try_join!(speaking, hearing) };
    tokio::select! {
        told = both => told.map(|((), latencies)| Latencies::new(latencies)),
        error = photo => Err(error.into()),
    }
}

/// Fills a packet of 1,500 bytes.
const PHOTO_PART: usize = 1452;
/// Messages of up to 84 bytes behind the time: 100 with it.
const SAYING: &str = "Have you seen this? It is what the harbour looked like when the fog went, last year.";
