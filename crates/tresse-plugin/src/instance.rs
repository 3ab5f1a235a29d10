//! Scheduler or controller from a shared object, of any kind: its creation, failure and destruction.
//!
//! The object's code has to be trusted, but its answers are checked: an invalid answer is a failure.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::abi::{FAILED, Life, NONE};
use crate::library::Loaded;

/// Object that `create` made and `destroy` has not been called with yet.
pub(crate) struct Instance {
    itself: NonNull<c_void>,
    life: Life,
    /// Failure, after which its hooks are no longer called.
    failed: Option<String>,
    /// Keeps the code there is to call.
    _loaded: Arc<Loaded>,
}

// SAFETY: the header demands of schedulers that they may be called from any thread, one at a time; `&mut` and the owner's
// exclusive access see to the second.
unsafe impl Send for Instance {}

impl Instance {
    /// `life` is out of the table of `loaded`.
    ///
    /// # Errors
    /// Fault of the configuration, in the scheduler's words.
    pub(crate) fn create(loaded: &Arc<Loaded>, life: Life, config: &str) -> Result<Self, String> {
        let config = CString::new(config)
            .map_err(|_| "a configuration has no zero byte for C to end it at".to_owned())?;
        let mut said = [0 as c_char; LONGEST_TEXT];
        // SAFETY: the text ends with zero and the buffer has the size that is said; both outlive the call. The code is
        // there as long as `loaded` is.
        let itself = unsafe { (life.create)(config.as_ptr(), said.as_mut_ptr(), said.len()) };
        let Some(itself) = NonNull::new(itself) else {
            let said = said.map(|letter| letter as u8);
            let end = said.iter().position(|&byte| byte == 0).unwrap_or(said.len());
            return Err(words(&said[..end]).unwrap_or_else(|| "it does not say why".to_owned()));
        };
        Ok(Instance { itself, life, failed: None, _loaded: Arc::clone(loaded) })
    }

    /// Pointer to call its hooks with, valid as long as this lives.
    pub(crate) fn itself(&self) -> *mut c_void {
        self.itself.as_ptr()
    }

    /// Failure, after which its hooks are not to be called.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// The number of a stream or a path, whatever `kind` says, that it answered with, if it is one.
    pub(crate) fn heed<T: TryFrom<i32>>(&mut self, answer: i32, kind: &str) -> Option<T> {
        match T::try_from(answer) {
            Ok(number) => return Some(number),
            Err(_) if answer == NONE => {}
            Err(_) if answer == FAILED => self.failed = Some(self.reason()),
            Err(_) => self.failed = Some(format!("it answered {answer}, which is no {kind}")),
        }
        None
    }

    /// Returns whether the answer of a hook that sets something says that it is set.
    pub(crate) fn confirm(&mut self, answer: i32) {
        match answer {
            0 => {}
            FAILED => self.failed = Some(self.reason()),
            other => self.failed = Some(format!("it answered {other}, and 0 or TRESSE_FAILED are accepted")),
        }
    }

    /// Reason that it gives for its failure.
    fn reason(&self) -> String {
        let said = self.life.failure.and_then(|failure| {
            // SAFETY: the scheduler is alive; what it answers is a text that ends with zero and stays until the
            // next call, or nothing.
            let said = unsafe { failure(self.itself()) };
            // SAFETY: as above; null was ruled out.
            (!said.is_null()).then(|| unsafe { CStr::from_ptr(said) }.to_bytes()).and_then(words)
        });
        said.unwrap_or_else(|| "it says that it cannot go on, and not why".to_owned())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: made by `create`, and not used again; the code goes later, with `_loaded`.
        unsafe { (self.life.destroy)(self.itself()) }
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
