//! Instance of a scheduler or controller from a shared object, of any kind: its creation, failure and destruction.
//!
//! The object's code has to be trusted, but its return values are checked: an invalid one is a failure.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::abi::{FAILED, Life, NONE};
use crate::library::Loaded;

/// Object that `create` has returned, and that `destroy` frees when this value is dropped.
pub(crate) struct Instance {
    itself: NonNull<c_void>,
    life: Life,
    /// Message of the failure after which its hooks are not called any more.
    failed: Option<String>,
    /// Keeps the code loaded.
    _loaded: Arc<Loaded>,
}

// SAFETY: the header requires that schedulers may be called from any thread, one at a time. `&mut` and the owner's exclusive access
// guarantee that calls do not overlap.
unsafe impl Send for Instance {}

impl Instance {
    /// Creates an instance with `config`; `life` comes from the table of `loaded`.
    ///
    /// # Errors
    /// The message of the foreign code about an invalid configuration.
    pub(crate) fn create(loaded: &Arc<Loaded>, life: Life, config: &str) -> Result<Self, String> {
        let config = CString::new(config)
            .map_err(|_| "a configuration has no zero byte for C to end it at".to_owned())?;
        let mut said = [0 as c_char; LONGEST_TEXT];
        // SAFETY: the text ends with a zero byte and the buffer has the given size; both outlive the call. `loaded` keeps the code
        // loaded.
        let itself = unsafe { (life.create)(config.as_ptr(), said.as_mut_ptr(), said.len()) };
        let Some(itself) = NonNull::new(itself) else {
            let said = said.map(|letter| letter as u8);
            let end = said.iter().position(|&byte| byte == 0).unwrap_or(said.len());
            return Err(words(&said[..end]).unwrap_or_else(|| "it does not say why".to_owned()));
        };
        Ok(Instance { itself, life, failed: None, _loaded: Arc::clone(loaded) })
    }

    /// Returns the pointer that its hooks take, valid as long as this value.
    pub(crate) fn itself(&self) -> *mut c_void {
        self.itself.as_ptr()
    }

    /// Returns the message of a failure; its hooks must not be called after it.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Converts the return value of a hook to the number of a stream or a path; `kind` names it in messages. `None` for no number,
    /// and for an invalid value, which is a failure.
    pub(crate) fn heed<T: TryFrom<i32>>(&mut self, answer: i32, kind: &str) -> Option<T> {
        match T::try_from(answer) {
            Ok(number) => return Some(number),
            Err(_) if answer == NONE => {}
            Err(_) if answer == FAILED => self.failed = Some(self.reason()),
            Err(_) => self.failed = Some(format!("it answered {answer}, which is no {kind}")),
        }
        None
    }

    /// Checks the return value of a hook that sets a window: any but 0 is a failure.
    pub(crate) fn confirm(&mut self, answer: i32) {
        match answer {
            0 => {}
            FAILED => self.failed = Some(self.reason()),
            other => self.failed = Some(format!("it answered {other}, and 0 or TRESSE_FAILED are accepted")),
        }
    }

    /// Returns the foreign code's message about its failure.
    fn reason(&self) -> String {
        let said = self.life.failure.and_then(|failure| {
            // SAFETY: the instance exists; the hook returns null, or a text that ends with a zero byte and does not change until
            // the next call.
            let said = unsafe { failure(self.itself()) };
            // SAFETY: as above; null was ruled out.
            (!said.is_null()).then(|| unsafe { CStr::from_ptr(said) }.to_bytes()).and_then(words)
        });
        said.unwrap_or_else(|| "it says that it cannot go on, and not why".to_owned())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: `create` returned the pointer, which is not used again; the code is unloaded later, with `_loaded`.
        unsafe { (self.life.destroy)(self.itself()) }
    }
}

/// Returns foreign text as one line; `None` if it is empty.
fn words(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let line: String =
        text.chars().take(LONGEST_TEXT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// Greatest number of bytes, or of characters, of a foreign text that are kept.
const LONGEST_TEXT: usize = 256;
