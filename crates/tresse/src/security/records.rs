//! TLS records in user messages: each message has one or more whole records.

/// The type of a record's content (RFC 8446 §5.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Content {
    ChangeCipherSpec,
    Alert,
    Handshake,
    /// Encrypted content of any type.
    ApplicationData,
}

/// Returns the content type of the first record, if a message is made of whole records.
pub(super) fn first_content(message: &[u8]) -> Option<Content> {
    let (first, mut rest) = split(message)?;
    while !rest.is_empty() {
        rest = split(rest)?.1;
    }
    Some(first)
}

/// Divides records into messages that are not much longer than `longest`: at least one record in each.
pub(super) fn messages(records: &[u8], longest: usize) -> Vec<&[u8]> {
    let mut messages = Vec::new();
    let (mut message, mut length) = (records, 0);
    while let Some((_, rest)) = split(&message[length..]) {
        let end = message.len() - rest.len();
        if length > 0 && end > longest {
            let (full, more) = message.split_at(length);
            messages.push(full);
            (message, length) = (more, end - length);
        } else {
            length = end;
        }
    }
    if !message.is_empty() {
        messages.push(message);
    }
    messages
}

/// Returns the content type of the first record, and the bytes behind it.
fn split(bytes: &[u8]) -> Option<(Content, &[u8])> {
    let [kind, 0x03, _, high, low, rest @ ..] = bytes else { return None };
    let content = match kind {
        20 => Content::ChangeCipherSpec,
        21 => Content::Alert,
        22 => Content::Handshake,
        23 => Content::ApplicationData,
        _ => return None,
    };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    if length == 0 || length > LONGEST_RECORD {
        return None;
    }
    Some((content, rest.get(length..)?))
}

/// Longest record: plain text of 16 KiB, and 256 bytes that encryption may add (RFC 8446 §5.2).
const LONGEST_RECORD: usize = 16_384 + 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, length: u16) -> Vec<u8> {
        let mut record = vec![kind, 3, 3];
        record.extend_from_slice(&length.to_be_bytes());
        record.resize(5 + usize::from(length), 0xaa);
        record
    }

    #[test]
    fn a_message_is_made_of_whole_records() {
        let whole = [record(22, 90), record(20, 1), record(23, 300)].concat();
        assert_eq!(first_content(&whole), Some(Content::Handshake));
        for cut in 1..whole.len() {
            let ends = [95, 101].contains(&cut);
            assert_eq!(first_content(&whole[..cut]).is_some(), ends, "{cut} bytes");
        }
        assert_eq!(first_content(&[]), None);
    }

    #[test]
    fn other_bytes_are_no_records() {
        assert_eq!(first_content(&record(24, 5)), None, "an unknown type");
        assert_eq!(first_content(&record(22, 0)), None, "nothing in it");
        assert_eq!(first_content(&record(23, 16_641)), None, "too long");
        assert!(first_content(&record(23, 16_640)).is_some());
        let mut other = record(22, 5);
        other[1] = 2;
        assert_eq!(first_content(&other), None, "another version");
    }

    #[test]
    fn records_are_cut_into_messages_between_them() {
        let records =
            [record(22, 95), record(23, 95), record(23, 95), record(23, 495), record(23, 5)].concat();
        let lengths: Vec<usize> = messages(&records, 250).iter().map(|message| message.len()).collect();
        assert_eq!(lengths, [200, 100, 500, 10]);
        assert!(messages(&[], 250).is_empty());
        assert_eq!(messages(&records, 5_000), [records.as_slice()]);
    }
}
