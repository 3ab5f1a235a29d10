//! CMT-SCTP over real sockets: associations over all paths between two hosts.
