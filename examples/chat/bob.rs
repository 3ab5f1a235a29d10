//! Bob: reads everything, and tells Alice how old each of her messages was when it came.

use tresse::{Association, SendOptions};

use crate::talk;

/// What came.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Listened {
    pub(crate) messages: usize,
    pub(crate) photo_bytes: usize,
}

/// Listens until Alice hangs up.
pub(crate) async fn listen(association: &Association) -> Listened {
    let mut listened = Listened::default();
    while let Ok(Some(message)) = association.recv().await {
        if message.stream == talk::PHOTO {
            listened.photo_bytes += message.payload.len();
        } else if let Some((age, _)) = talk::read(&message.payload.into_bytes()) {
            listened.messages += 1;
            let answer = age.as_nanos().to_be_bytes().to_vec();
            if association.send(SendOptions::on(talk::MESSAGES), answer).await.is_err() {
                break;
            }
        }
    }
    listened
}
