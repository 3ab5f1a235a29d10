//! The turn of an emulation's thread among those of the machine: a packet is as late as its turn.

/// Lets this thread come before all ordinary ones, and returns whether it does; where the user may not have that, it gets the
/// highest of the ordinary priorities, and where not even that, it stays where it was.
#[cfg(target_os = "linux")]
pub(super) fn come_first() -> bool {
    use thread_priority::unix::{set_thread_priority_and_policy, thread_native_id, thread_schedule_policy};
    use thread_priority::{RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy};

    // Whoever started it in such a class has chosen its place there.
    if matches!(thread_schedule_policy(), Ok(ThreadSchedulePolicy::Realtime(_))) {
        return true;
    }
    // Linux leaves ordinary threads a twentieth of the time whatever this one does (sched_rt_runtime_us).
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let in_real_time =
        set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).is_ok();
    if !in_real_time {
        raise_priority();
    }
    in_real_time
}

#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn come_first() -> bool {
    raise_priority();
    false
}

#[cfg(not(unix))]
pub(super) fn come_first() -> bool {
    false
}

#[cfg(unix)]
fn raise_priority() {
    let _ = rustix::process::setpriority_process(None, HIGHEST_PRIORITY);
}

/// A nice value.
#[cfg(unix)]
const HIGHEST_PRIORITY: i32 = -20;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::thread;

    use thread_priority::{RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, thread_schedule_policy};

    use super::*;

    #[test]
    fn a_thread_that_comes_first_is_in_a_class_for_it() {
        // In a thread of its own: the tests beside this one stay where they are.
        let spawned = thread::spawn(|| (come_first(), thread_schedule_policy()));
        let (first, policy) = spawned.join().expect("it ends");
        let in_class = policy == Ok(ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo));
        assert_eq!(first, in_class);
    }
}
