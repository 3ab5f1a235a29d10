//! A deterministic network simulator around the tresse endpoint.
