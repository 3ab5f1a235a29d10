//! Scheduling priority of an emulation's thread: packets are late when the thread runs late.

/// Gives this thread a real-time priority, and returns whether it has one. Without the permission, the thread gets the highest ordinary
/// priority, or keeps its own.
#[cfg(target_os = "linux")]
pub(super) fn come_first() -> bool {
    use thread_priority::unix::{set_thread_priority_and_policy, thread_native_id, thread_schedule_policy};
    use thread_priority::{RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy};

    // A real-time priority with which the process was started is kept.
    if matches!(thread_schedule_policy(), Ok(ThreadSchedulePolicy::Realtime(_))) {
        return true;
    }
    // Linux reserves a twentieth of the time for ordinary threads (sched_rt_runtime_us).
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

/// The highest ordinary priority, as a nice value.
#[cfg(unix)]
const HIGHEST_PRIORITY: i32 = -20;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::thread;

    use thread_priority::{RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, thread_schedule_policy};

    use super::*;

    #[test]
    fn a_thread_that_comes_first_is_in_a_class_for_it() {
        // In a separate thread, so that other tests keep their priority.
        let spawned = thread::spawn(|| (come_first(), thread_schedule_policy()));
        let (first, policy) = spawned.join().expect("it ends");
        let in_class = policy == Ok(ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo));
        assert_eq!(first, in_class);
    }
}
