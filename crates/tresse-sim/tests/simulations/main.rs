//! Whole runs: what comes out of a scenario, and what must never happen in one.

mod beside_sctp;
mod blocked_copies;
mod capture;
mod common;
mod congestion;
mod cross;
mod damage;
mod delivery;
mod determinism;
mod ecn;
mod emulated;
mod failover;
mod fairness;
mod impairments;
mod joins;
mod late;
mod lossy;
mod mtu;
mod outside;
mod path_schedulers;
mod protected;
mod records;
mod rescheduling;
mod throughput;
mod together;
mod verdicts;
