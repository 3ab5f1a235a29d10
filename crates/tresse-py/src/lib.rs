//! Python bindings of tresse (private module tresse._native).
