//! Numbers of descriptors that the program may take for something else while a call still knows them.

use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of a descriptor, closed once at most: a call that lasts longer than the descriptor closes nothing that has the number
/// after it.
pub(crate) struct Number {
    value: RawFd,
    /// It is closed, or belongs to something else.
    gone: AtomicBool,
}

impl Number {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Number { value: fd.into_raw_fd(), gone: AtomicBool::new(false) }
    }

    pub(crate) fn value(&self) -> RawFd {
        self.value
    }

    /// Returns whether it stands for the descriptor no more.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Leaves the number to whoever has it now; returns whether it stood for the descriptor until then.
    pub(crate) fn give_up(&self) -> bool {
        !self.gone.swap(true, Ordering::AcqRel)
    }

    /// Closes the descriptor, unless that was done or the number given up.
    pub(crate) fn close(&self) {
        if self.give_up() {
            super::close_all(&[self.value]);
        }
    }
}

impl AsFd for Number {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the number is not -1, and open until it is gone. Who may write by it holds the lock under which it goes;
        // others at most wait for what has the number then, as calls of the system do on numbers that are closed meanwhile.
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
        // SAFETY: it was given up, so that nobody else closes it.
        let still = unsafe { OwnedFd::from_raw_fd(value) };
        rustix::io::fcntl_getfd(&still).expect("it is open");
    }
}
