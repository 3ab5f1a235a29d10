//! The named choices of authentication (RFC 4895).

use tresse_wire::{ChunkKind, KindSet};

use super::switch::{SwitchValue, choices};

choices! {
    /// The hash of authenticated chunks that this side asks its peer for (RFC 4895 §3.3). It verifies both.
    pub enum AuthHash {
        /// SHA-256, or SHA-1 where the peer does not have it.
        Sha256 = "sha256",
        /// SHA-1, which every peer has.
        Sha1 = "sha1",
    }
}

/// A list of chunk types, such as those that are accepted only when authenticated. Text form: "none", or names such as
/// "data,cookie_echo".
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ChunkList(pub KindSet);

/// Chunk types that cannot be authenticated (RFC 4895 §3.2).
pub(crate) const UNLISTED: [ChunkKind; 4] =
    [ChunkKind::INIT, ChunkKind::INIT_ACK, ChunkKind::SHUTDOWN_COMPLETE, ChunkKind::AUTH];

impl SwitchValue for ChunkList {
    fn parse(text: &str) -> Option<Self> {
        if text == "none" {
            return Some(ChunkList::default());
        }
        text.split(',').map(|item| kind_of(item.trim())).collect::<Option<KindSet>>().map(ChunkList)
    }

    fn print(&self) -> String {
        let names: Vec<String> = self.0.iter().map(|kind| text_of(kind).unwrap_or_default()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(",") }
    }

    fn accepted() -> String {
        "\"none\", or chunk types that can be authenticated, such as \"data,cookie_echo\"".to_owned()
    }
}

fn kind_of(text: &str) -> Option<ChunkKind> {
    let kind = ChunkKind::ALL.iter().copied().find(|&kind| text_of(kind).as_deref() == Some(text))?;
    (!UNLISTED.contains(&kind)).then_some(kind)
}

/// Returns the name of a chunk type in its RFC, as one word.
fn text_of(kind: ChunkKind) -> Option<String> {
    kind.name().map(|name| name.to_lowercase().replace([' ', '-'], "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_lists_have_a_text_form() {
        let list = ChunkList::parse("cookie_echo, data,i_data").expect("names");
        assert_eq!(list.print(), "data,cookie_echo,i_data");
        assert_eq!(ChunkList::parse(&list.print()), Some(list));
        assert_eq!(ChunkList::parse("none").expect("no types").print(), "none");
        for text in ["", "init", "auth", "DATA", "data,", "shutdown_complete", "17"] {
            assert_eq!(ChunkList::parse(text), None, "{text}");
        }
    }
}
