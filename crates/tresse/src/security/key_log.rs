//! Log of record keys, for analysis of captures of one's own traffic: a line for each key, and an opener of records
//! with such lines.
//!
//! The log allows to read, and change, everything that these keys protect. Nothing is written unless an application requests it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use tresse_proto::protection::{Epoch, RecordKeys, Suite};
use tresse_wire::Dtls;
use zeroize::Zeroizing;

use super::layer::record_keys;

/// Function that receives the keys.
#[derive(Clone)]
pub(super) struct KeyLog(pub(super) Arc<dyn Fn(&LoggedKey) + Send + Sync>);

/// The keys of one direction and one epoch: a line `suite epoch key sn_key iv`, numbers in decimal and bytes in hexadecimal.
#[derive(Clone, PartialEq, Eq)]
pub struct LoggedKey {
    suite: Suite,
    epoch: Epoch,
    key: Zeroizing<Vec<u8>>,
    sn_key: Zeroizing<Vec<u8>>,
    iv: Zeroizing<Vec<u8>>,
}

impl LoggedKey {
    pub(super) fn new(suite: Suite, epoch: Epoch, [key, sn_key, iv]: [&[u8]; 3]) -> Self {
        let [key, sn_key, iv] = [key, sn_key, iv].map(|bytes| Zeroizing::new(bytes.to_vec()));
        LoggedKey { suite, epoch, key, sn_key, iv }
    }

    /// Returns the line, which is as secret as the data that the key protects.
    pub fn line(&self) -> Zeroizing<String> {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let [key, sn_key, iv] = [&self.key, &self.sn_key, &self.iv].map(|bytes| hex(bytes));
        Zeroizing::new(format!("{} {} {key} {sn_key} {iv}", self.suite.id(), self.epoch.0))
    }
}

impl FromStr for LoggedKey {
    type Err = KeyLogError;

    fn from_str(line: &str) -> Result<Self, KeyLogError> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [suite, epoch, key, sn_key, iv] = fields[..] else { return Err(KeyLogError) };
        let suite = suite.parse().ok().and_then(Suite::of_id).ok_or(KeyLogError)?;
        let epoch = Epoch(epoch.parse().map_err(|_| KeyLogError)?);
        let [key, sn_key, iv] = [bytes(key)?, bytes(sn_key)?, bytes(iv)?];
        record_keys(suite, &key, &sn_key, &iv).ok_or(KeyLogError)?;
        Ok(LoggedKey { suite, epoch, key, sn_key, iv })
    }
}

impl fmt::Debug for LoggedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggedKey")
            .field("suite", &self.suite)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

fn bytes(hex: &str) -> Result<Zeroizing<Vec<u8>>, KeyLogError> {
    if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
        return Err(KeyLogError);
    }
    let pairs = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16));
    pairs.collect::<Result<Vec<u8>, _>>().map(Zeroizing::new).map_err(|_| KeyLogError)
}

/// The error that a line has no key.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("is no line of a key log: suite, epoch, key, key of record numbers, and IV are wanted")]
pub struct KeyLogError;

/// Opener of records with logged keys, for which the association of each key is unknown.
pub struct Opener(Vec<Context>);

struct Context {
    epoch: Epoch,
    keys: RecordKeys,
    /// The highest opened record number plus one.
    next: u64,
}

impl Opener {
    /// Makes an opener with these keys.
    pub fn new(keys: impl IntoIterator<Item = LoggedKey>) -> Self {
        let context = |key: LoggedKey| {
            let keys = record_keys(key.suite, &key.key, &key.sn_key, &key.iv)?;
            Some(Context { epoch: key.epoch, keys, next: 0 })
        };
        Opener(keys.into_iter().filter_map(context).collect())
    }

    /// Returns the chunks in a DTLS chunk; `None` if no key opens it. Each key of its epoch bits is tried, with the
    /// number next to the highest so far, and with those 65,536 before and after it.
    pub fn open(&mut self, chunk: &Dtls<'_>) -> Option<Vec<u8>> {
        let (&header, text, &tag) = chunk.parts()?;
        let bits = u64::from(chunk.epoch_bits()?);
        let sample: [u8; 16] =
            std::array::from_fn(|at| text.iter().chain(&tag).nth(at).copied().unwrap_or(0));
        for context in self.0.iter_mut().filter(|context| context.epoch.0 & 3 == bits) {
            let mask = context.keys.layer.mask(&sample);
            let low = u16::from_be_bytes([header[1] ^ mask[0], header[2] ^ mask[1]]);
            let nearest = (context.next & !0xffff) | u64::from(low);
            let candidates = [Some(nearest), nearest.checked_add(1 << 16), nearest.checked_sub(1 << 16)];
            for number in candidates.into_iter().flatten() {
                let mut nonce = context.keys.iv;
                for (byte, part) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
                    *byte ^= part;
                }
                let mut opened = text.to_vec();
                let clear = Dtls::record_header(context.epoch.0, number);
                if context.keys.layer.open(&nonce, &clear, &mut opened, &tag).is_ok() {
                    context.next = context.next.max(number.saturating_add(1));
                    return Dtls::chunks_in(&opened).map(<[u8]>::to_vec);
                }
            }
        }
        None
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").field("keys", &self.0.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use tresse_wire::{ChecksumRule, Chunk, Packet};

    use super::*;

    /// The published vector: AES-128-GCM, epochs 3 and 4 with one key.
    const KEY: &str =
        "00112233445566778899aabbccddeeff a1b2c3d4e5f60718293a4b5c6d7e8f90 deadbeefcafebabe12345678";

    fn packet(chunk: &str) -> Vec<u8> {
        let header = "1388138900000007";
        let whole: Vec<u8> = [header, "00000000", chunk]
            .concat()
            .as_bytes()
            .chunks(2)
            .map(|pair| {
                u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hexadecimal")
            })
            .collect();
        whole
    }

    fn opened(opener: &mut Opener, packet: &[u8]) -> Option<Vec<u8>> {
        let packet = Packet::parse(packet, ChecksumRule::Trust).expect("a packet");
        match packet.chunks().next() {
            Some(Ok(Chunk::Dtls(dtls))) => opener.open(&dtls),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_survive_and_open_the_published_records() {
        let line = format!("4865 3 {KEY}");
        let key: LoggedKey = line.parse().expect("a key");
        assert_eq!(*key.line(), line);
        let mut opener = Opener::new([key]);
        let first = packet("4100001d002b6fb770211d582fa48edf37fb2b31b21bf88de36e372a64000000");
        assert_eq!(opened(&mut opener, &first).as_deref(), Some(&[0x0b, 0, 0, 4][..]));
        let mut changed = first;
        changed[24] ^= 1;
        assert_eq!(opened(&mut opener, &changed), None);
        let second = packet("4100001d002866775d816c74edebd7419668afc0520f597c8396b9cd65000000");
        assert_eq!(opened(&mut opener, &second), None, "of epoch 4");
        // Its number is 65,538.
        let mut opener = Opener::new([format!("4865 4 {KEY}").parse().expect("a key")]);
        assert_eq!(opened(&mut opener, &second).as_deref(), Some(&[0x0b, 0, 0, 4][..]));
    }

    #[test]
    fn other_lines_are_refused() {
        let short = KEY.replace("0011", "");
        for line in [
            "",
            "4865 3",
            "9 3 00 00 00",
            &format!("4866 3 {KEY}"),
            &format!("4865 3 {short}"),
            "4865 3 é é é",
        ] {
            assert_eq!(line.parse::<LoggedKey>(), Err(KeyLogError), "{line}");
        }
    }
}
