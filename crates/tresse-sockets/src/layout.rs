//! C structures as bytes, read and written by offset, in the byte order of this machine. The offsets are those of Linux's
//! `<linux/sctp.h>` and `<sys/socket.h>`; a test compares them with those of a C compiler.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustix::io::Errno;

/// A structure that is being written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Filled(Vec<u8>);

impl Filled {
    /// Creates a structure of `size` zero bytes.
    pub(crate) fn new(size: usize) -> Self {
        Filled(vec![0; size])
    }

    #[must_use]
    pub(crate) fn put(mut self, at: usize, bytes: &[u8]) -> Self {
        if let Some(place) = self.0.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self
    }

    #[must_use]
    pub(crate) fn u8(self, at: usize, value: u8) -> Self {
        self.put(at, &[value])
    }

    #[must_use]
    pub(crate) fn u16(self, at: usize, value: u16) -> Self {
        self.put(at, &value.to_ne_bytes())
    }

    #[must_use]
    pub(crate) fn u32(self, at: usize, value: u32) -> Self {
        self.put(at, &value.to_ne_bytes())
    }

    #[must_use]
    pub(crate) fn i32(self, at: usize, value: i32) -> Self {
        self.put(at, &value.to_ne_bytes())
    }

    #[must_use]
    pub(crate) fn u64(self, at: usize, value: u64) -> Self {
        self.put(at, &value.to_ne_bytes())
    }

    /// Writes a number as 32 bits; the largest value stands for all greater numbers.
    #[must_use]
    pub(crate) fn size(self, at: usize, value: usize) -> Self {
        self.u32(at, u32::try_from(value).unwrap_or(u32::MAX))
    }

    /// Appends bytes of any length to the structure.
    #[must_use]
    pub(crate) fn tail(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Reads fields of a structure that the program passed.
///
/// # Errors
/// `INVAL` for a structure that is too short.
pub(crate) trait Fields {
    fn array<const N: usize>(&self, at: usize) -> Result<[u8; N], Errno>;

    fn u8_at(&self, at: usize) -> Result<u8, Errno> {
        self.array::<1>(at).map(|[byte]| byte)
    }

    fn u16_at(&self, at: usize) -> Result<u16, Errno> {
        self.array(at).map(u16::from_ne_bytes)
    }

    fn u32_at(&self, at: usize) -> Result<u32, Errno> {
        self.array(at).map(u32::from_ne_bytes)
    }

    fn i32_at(&self, at: usize) -> Result<i32, Errno> {
        self.array(at).map(i32::from_ne_bytes)
    }
}

impl Fields for [u8] {
    fn array<const N: usize>(&self, at: usize) -> Result<[u8; N], Errno> {
        let bytes = self.get(at..).and_then(|rest| rest.get(..N));
        bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(Errno::INVAL)
    }
}

/// An address and a port, as `struct sockaddr_in` and `struct sockaddr_in6` have them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SocketName {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
}

impl SocketName {
    /// Reads a name. An IPv4-mapped IPv6 address becomes an IPv4 address.
    ///
    /// # Errors
    /// `INVAL` for a truncated name, or a name of another family.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Errno> {
        let port = |at| bytes.array(at).map(u16::from_be_bytes);
        match i32::from(bytes.u16_at(0)?) {
            libc::AF_INET => {
                let address = Ipv4Addr::from(bytes.array::<4>(4)?);
                Ok(SocketName { address: address.into(), port: port(2)? })
            }
            libc::AF_INET6 => {
                let address = Ipv6Addr::from(bytes.array::<16>(8)?);
                let plain = address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4);
                Ok(SocketName { address: plain, port: port(2)? })
            }
            _ => Err(Errno::INVAL),
        }
    }

    /// Reads several names that follow each other without gaps.
    ///
    /// # Errors
    /// As for [`SocketName::read`].
    pub(crate) fn read_all(mut bytes: &[u8]) -> Result<Vec<Self>, Errno> {
        let mut names = Vec::new();
        while !bytes.is_empty() {
            names.push(SocketName::read(bytes)?);
            bytes = bytes.get(names_length(bytes)?..).unwrap_or_default();
        }
        Ok(names)
    }

    /// Returns the bytes of the C structure; with `mapped`, an IPv4 address is written as an IPv4-mapped IPv6 address
    /// (SCTP_I_WANT_MAPPED_V4_ADDR).
    pub(crate) fn write(self, mapped: bool) -> Vec<u8> {
        match self.address {
            IpAddr::V4(v4) if !mapped => Filled::new(SIZE_OF_V4)
                .u16(0, libc::AF_INET as u16)
                .put(2, &self.port.to_be_bytes())
                .put(4, &v4.octets())
                .bytes(),
            address => {
                let v6 = match address {
                    IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                    IpAddr::V6(v6) => v6,
                };
                Filled::new(SIZE_OF_V6)
                    .u16(0, libc::AF_INET6 as u16)
                    .put(2, &self.port.to_be_bytes())
                    .put(8, &v6.octets())
                    .bytes()
            }
        }
    }

    /// Returns whether the address is a multicast or broadcast address, which no association can use.
    pub(crate) fn is_group(self) -> bool {
        self.address.is_multicast() || self.address == IpAddr::V4(Ipv4Addr::BROADCAST)
    }

    /// Returns whether the address is the wildcard.
    pub(crate) fn is_wildcard(self) -> bool {
        self.address.is_unspecified()
    }
}

/// Returns the length of the name at the beginning of `bytes`, by its family.
///
/// # Errors
/// `INVAL` for another family.
pub(crate) fn names_length(bytes: &[u8]) -> Result<usize, Errno> {
    match i32::from(bytes.u16_at(0)?) {
        libc::AF_INET => Ok(SIZE_OF_V4),
        libc::AF_INET6 => Ok(SIZE_OF_V6),
        _ => Err(Errno::INVAL),
    }
}

/// Returns the name at the beginning of `bytes`; other bytes may follow.
///
/// # Errors
/// `INVAL` for a truncated name.
pub(crate) fn first_name(bytes: &[u8]) -> Result<&[u8], Errno> {
    SocketName::read(bytes)?;
    Ok(bytes.get(..names_length(bytes)?).unwrap_or(bytes))
}

const SIZE_OF_V4: usize = 16;
const SIZE_OF_V6: usize = 28;
/// Size of `struct sockaddr_storage`.
pub(crate) const STORAGE: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (text, mapped) in [("10.1.2.3", false), ("10.1.2.3", true), ("2001:db8::7", false)] {
            let name = SocketName { address: text.parse().expect("an address"), port: 0x1234 };
            let bytes = name.write(mapped);
            assert_eq!(SocketName::read(&bytes), Ok(name));
            for cut in 0..8 {
                assert_eq!(SocketName::read(&bytes[..cut]), Err(Errno::INVAL), "{cut}");
            }
            let two = [bytes.clone(), bytes].concat();
            assert_eq!(SocketName::read_all(&two), Ok(vec![name, name]));
        }
        assert_eq!(SocketName::read(&[1, 0, 2, 3]), Err(Errno::INVAL));
    }

    #[test]
    fn what_does_not_fit_a_structure_is_left_out() {
        assert_eq!(Filled::new(3).u32(0, 7).u16(1, 0x0101).bytes(), [0, 1, 1]);
    }
}
