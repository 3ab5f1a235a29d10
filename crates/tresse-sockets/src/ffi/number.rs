//! Numbers of descriptors that the program may close and reuse while a call still refers to them.

use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of a descriptor, closed at most once: a call that outlives the descriptor does not close another one with the same
/// number.
pub(crate) struct Number {
    value: RawFd,
    /// True if the number is closed, or belongs to another descriptor.
    gone: AtomicBool,
}

impl Number {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Number { value: fd.into_raw_fd(), gone: AtomicBool::new(false) }
    }

    pub(crate) fn value(&self) -> RawFd {
        self.value
    }

    /// Returns whether the number no longer belongs to the descriptor.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Leaves the number open, for another descriptor; returns whether it belonged to this descriptor until then.
    pub(crate) fn give_up(&self) -> bool {
        !self.gone.swap(true, Ordering::AcqRel)
    }

    /// Closes the descriptor, unless it was closed or its number given up before.
    pub(crate) fn close(&self) {
        if self.give_up() {
            super::system::close_all(&[self.value]);
        }
    }
}

impl AsFd for Number {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the number is not -1, and open until `gone` is set. Code that writes to it holds the lock under which `gone` is
        // set. Other code at most waits for another descriptor that has the number then, as system calls do on a number that is
        // closed meanwhile.
        unsafe { BorrowedFd::borrow_raw(self.value) }
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::FromRawFd;

    use super::*;

    #[test]
    fn a_number_that_was_given_up_is_left_open() {
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        let number = Number::new(reader.into());
        let value = number.value();
        assert!(!number.is_gone() && number.give_up());
        assert!(number.is_gone() && !number.give_up(), "once only");
        number.close();
        drop(number);
        // SAFETY: the number was given up, so no other code closes it.
        let still = unsafe { OwnedFd::from_raw_fd(value) };
        rustix::io::fcntl_getfd(&still).expect("it is open");
    }
}
