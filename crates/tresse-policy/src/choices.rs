//! Named choices for policies: the path of a SACK, the path of a retransmission, the class of a stream.
//!
//! Each is an enum whose variants have names, so that a configuration can be read and printed.

/// Declares an enum whose variants have names and documentation.
#[macro_export]
macro_rules! choices {
    ($(#[$meta:meta])* pub enum $type:ident { $($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        pub enum $type { $($(#[doc = $doc])+ $variant,)+ }

        impl $type {
            /// Every variant, in the order of declaration.
            pub const ALL: &'static [$type] = &[$($type::$variant,)+];

            /// Name of the variant in configurations.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)+ }
            }

            /// Documentation of the variant.
            pub const fn doc(self) -> &'static str {
                match self { $($type::$variant => concat!($($doc,)+).trim_ascii(),)+ }
            }
        }
    };
}

choices! {
    /// Path on which a SACK is sent (RFC 9260 §6.4: to the source of the data).
    pub enum SackPath {
        /// The source of the last DATA packet.
        LastData = "last_data",
        /// The source of the first DATA packet since the last SACK.
        FirstData = "first_data",
        /// The primary path.
        Primary = "primary",
        /// Of the paths that brought DATA since the last SACK, the one whose last SACK is oldest.
        RoundRobin = "round_robin",
        /// Of the paths that brought DATA since the last SACK, the one with the smallest smoothed round-trip time.
        LowestRtt = "lowest_rtt",
        /// Of all paths on which something arrived lately, the one with the smallest smoothed round-trip time: data
        /// that is acknowledged sooner leaves the peer's buffer sooner.
        Fastest = "fastest",
    }
}

choices! {
    /// Path of a retransmission (RFC 9260 §6.4.1; the policies of Iyengar et al. for CMT). Only a path that may carry
    /// data is selected. Among equal paths the path with the most room is selected, then the alternate path; the paper
    /// selects one at random.
    pub enum RetransmitPath {
        /// The path that the chunk was lost on (RTX-SAME).
        Same = "same",
        /// Another path, if possible one that shares no address with it (RFC 9260 §6.4.1).
        Alternate = "alternate",
        /// The first path whose window has room when the chunk can leave (RTX-ASAP).
        Asap = "asap",
        /// The path with the largest congestion window (RTX-CWND).
        Cwnd = "cwnd",
        /// The path with the largest slow-start threshold (RTX-SSTHRESH).
        Ssthresh = "ssthresh",
        /// The path with the lowest loss rate, given by the application or estimated (RTX-LOSSRATE).
        LossRate = "loss_rate",
    }
}

choices! {
    /// Purpose of a stream. Only the adaptive stream map uses it.
    #[derive(PartialOrd, Ord)]
    pub enum StreamClass {
        /// Lowest delay of each message: sent before all other streams, on the path that delivers first.
        Latency = "latency",
        /// Highest throughput; the class of a stream that was given none.
        Bulk = "bulk",
        /// Only the capacity that no other stream can use.
        Background = "background",
    }
}

#[expect(clippy::derivable_impls, reason = "the macro has no place for the mark of a default variant")]
impl Default for StreamClass {
    fn default() -> Self {
        StreamClass::Bulk
    }
}
