//! Timer of an emulation. The runtime's timers are exact to a millisecond or two, which is as much as the delays of paths differ.
//!
//! Linux has timers that are exact to some hundredths of a millisecond and can be awaited like sockets (timerfd_create(2)). Other systems
//! use the runtime's timers.

use std::io;

use tokio::time::Instant as RealTime;

pub(super) use system::Alarm;

#[cfg(target_os = "linux")]
mod system {
    use std::os::fd::OwnedFd;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    use super::{RealTime, io};

    pub(crate) struct Alarm {
        timer: AsyncFd<OwnedFd>,
        /// Time to which the timer is set.
        due: Option<RealTime>,
    }

    impl Alarm {
        pub(crate) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
            #[expect(
                deprecated,
                reason = "what the newer one asks for in unsafe code, an owned descriptor has by its type"
            )]
            let timer = AsyncFd::new(timerfd_create(TimerfdClockId::Monotonic, flags)?)?;
            Ok(Alarm { timer, due: None })
        }

        /// Waits until `due`; without a time, forever. The future may be dropped and the method called again.
        pub(crate) async fn wait(&mut self, due: Option<RealTime>) -> io::Result<()> {
            let Some(due) = due else { return std::future::pending().await };
            loop {
                let left = due.saturating_duration_since(RealTime::now());
                if left.is_zero() {
                    return Ok(());
                }
                if self.due != Some(due) {
                    let interval = Timespec { tv_sec: 0, tv_nsec: 0 };
                    let value = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
                    let setting = Itimerspec { it_interval: interval, it_value: value };
                    timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &setting)?;
                    self.due = Some(due);
                }
                let mut ready = self.timer.readable().await?;
                // Reads the number of expirations: one, or nothing if the timer was set again meanwhile.
                let _ = rustix::io::read(ready.get_inner(), &mut [0; 8]);
                ready.clear_ready();
                self.due = None;
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{RealTime, io};

    pub(crate) struct Alarm;

    impl Alarm {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Alarm)
        }

        /// Waits until `due`; without a time, forever.
        pub(crate) async fn wait(&mut self, due: Option<RealTime>) -> io::Result<()> {
            let Some(due) = due else { return std::future::pending().await };
            tokio::time::sleep_until(due).await;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn an_alarm_goes_off_when_it_is_due_and_can_be_set_anew() {
        let mut alarm = Alarm::new().expect("the system has timers");
        let begin = RealTime::now();
        let (soon, late) = (begin + Duration::from_millis(20), begin + Duration::from_secs(3600));
        let given_up = tokio::time::timeout(Duration::from_millis(5), alarm.wait(Some(late))).await;
        assert!(given_up.is_err(), "an hour has not passed");
        alarm.wait(Some(soon)).await.expect("it goes off");
        assert!(RealTime::now() >= soon);
        alarm.wait(Some(begin)).await.expect("it is over already");
    }
}
