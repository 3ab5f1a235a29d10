//! The SCTP endpoint without I/O: associations, paths, scheduling, congestion control.
