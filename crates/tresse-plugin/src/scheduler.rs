//! One scheduler out of a shared object, as the core sees it.
//!
//! Trusts the object's code, which it cannot help, and no answer of it: an answer that means nothing is a failure.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use tresse_proto::StreamId;
use tresse_proto::schedule::{Backlog, PathView, Queued, Removed, StreamScheduler, Taken};

use crate::abi::{FAILED, Hooks, NO_STREAM};
use crate::library::Loaded;
use crate::views::{self, Questions};

/// A scheduler that `create` made and `destroy` has not seen yet.
pub(crate) struct Foreign {
    itself: NonNull<c_void>,
    /// Why it is not asked any more.
    failed: Option<String>,
    /// Keeps the code there is to call.
    loaded: Arc<Loaded>,
}

// SAFETY: the header demands of schedulers that they may be called from any thread, one at a time; `&mut` and the owner's
// exclusive access see to the second.
unsafe impl Send for Foreign {}

impl Foreign {
    /// # Errors
    /// What the scheduler says of its configuration.
    pub(crate) fn create(loaded: &Arc<Loaded>, config: &str) -> Result<Self, String> {
        let config = CString::new(config)
            .map_err(|_| "a configuration has no zero byte for C to end it at".to_owned())?;
        let mut said = [0 as c_char; LONGEST_TEXT];
        // SAFETY: the text ends with zero and the buffer has the size that is said; both outlive the call. The code is
        // there as long as `loaded` is.
        let itself = unsafe { (loaded.hooks().create)(config.as_ptr(), said.as_mut_ptr(), said.len()) };
        let Some(itself) = NonNull::new(itself) else {
            let said = said.map(|letter| letter as u8);
            let end = said.iter().position(|&byte| byte == 0).unwrap_or(said.len());
            return Err(words(&said[..end]).unwrap_or_else(|| "it does not say why".to_owned()));
        };
        Ok(Foreign { itself, failed: None, loaded: Arc::clone(loaded) })
    }

    fn hooks(&self) -> &Hooks {
        self.loaded.hooks()
    }

    /// Why it says that it cannot go on.
    fn reason(&self) -> String {
        let said = self.hooks().failure.and_then(|failure| {
            // SAFETY: the scheduler is alive; what it answers is a text that ends with zero and stays until the
            // next call, or nothing.
            let said = unsafe { failure(self.itself.as_ptr()) };
            // SAFETY: as above; null was ruled out.
            (!said.is_null()).then(|| unsafe { CStr::from_ptr(said) }.to_bytes()).and_then(words)
        });
        said.unwrap_or_else(|| "it says that it cannot go on, and not why".to_owned())
    }
}

// SAFETY, for every call below: the code is there as long as `loaded` is, the scheduler from `create` until `drop`, and
// nobody else uses it meanwhile; views live until the call returns.
impl StreamScheduler for Foreign {
    fn on_queued(&mut self, queued: Queued) {
        // SAFETY: see above.
        unsafe { (self.hooks().on_queued)(self.itself.as_ptr(), &views::queued(&queued)) }
    }

    fn next(&mut self, path: &PathView, backlog: &dyn Backlog) -> Option<StreamId> {
        if self.failed.is_some() {
            return None;
        }
        let questions = Questions::new(backlog);
        // SAFETY: see above.
        let answer =
            unsafe { (self.hooks().next)(self.itself.as_ptr(), &views::path(path), &questions.view()) };
        match u16::try_from(answer) {
            Ok(stream) => return Some(StreamId(stream)),
            Err(_) if answer == NO_STREAM => {}
            Err(_) if answer == FAILED => self.failed = Some(self.reason()),
            Err(_) => self.failed = Some(format!("it answered {answer}, which is no stream")),
        }
        None
    }

    fn on_taken(&mut self, taken: Taken) {
        // SAFETY: see above.
        unsafe { (self.hooks().on_taken)(self.itself.as_ptr(), &views::taken(&taken)) }
    }

    fn on_removed(&mut self, removed: Removed) {
        match self.hooks().on_removed {
            // SAFETY: see above.
            Some(on_removed) => unsafe { on_removed(self.itself.as_ptr(), &views::removed(&removed)) },
            None if removed.stream_empty => {
                let Removed { stream, bytes, .. } = removed;
                self.on_taken(Taken {
                    stream,
                    bytes,
                    message_done: true,
                    turn_over: true,
                    stream_empty: true,
                });
            }
            None => {}
        }
    }

    fn on_packet_end(&mut self) {
        if let Some(on_packet_end) = self.hooks().on_packet_end {
            // SAFETY: see above.
            unsafe { on_packet_end(self.itself.as_ptr()) }
        }
    }

    fn is_empty(&self) -> bool {
        // SAFETY: see above.
        unsafe { (self.hooks().is_empty)(self.itself.as_ptr()) != 0 }
    }

    fn set_value(&mut self, stream: StreamId, value: u16) -> Result<(), String> {
        let set_value = self.hooks().set_value.ok_or("streams have no values with this scheduler")?;
        // SAFETY: see above.
        match unsafe { set_value(self.itself.as_ptr(), stream.0, value) } {
            0 => Ok(()),
            code => Err(format!("it refuses with code {code}")),
        }
    }

    fn value(&self, stream: StreamId) -> Option<u16> {
        let value = self.hooks().value?;
        // SAFETY: see above.
        u16::try_from(unsafe { value(self.itself.as_ptr(), stream.0) }).ok()
    }

    fn failure(&self) -> Option<String> {
        self.failed.clone()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: made by `create`, and not used again; the code goes later, with `loaded`.
        unsafe { (self.hooks().destroy)(self.itself.as_ptr()) }
    }
}

/// Foreign text on one line; `None` for none.
fn words(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let line: String =
        text.chars().take(LONGEST_TEXT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// Bytes of a foreign text that are kept.
const LONGEST_TEXT: usize = 256;
