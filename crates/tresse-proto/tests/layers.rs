//! The layers of ARCHITECTURE.md, enforced: a module uses modules on the lines above its own, and
//! from the second line on never one beside it. Neither this crate nor those below it, `tresse-wire` and `tresse-policy`,
//! reach for sockets, files, threads or a clock.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules from the bottom up.
type Layers = &'static [&'static [&'static str]];

/// Modules of the policies; those of the first line may use each other.
const POLICY: Layers = &[
    &["choices", "error", "names", "panics", "path", "stream_table", "time"],
    &["congestion", "maps", "schedule", "sharing"],
    &["registry"],
    &["engine"],
];

/// Modules of the core, likewise.
const CORE: Layers = &[
    &["collections", "config", "context", "coverage", "fragment", "interface", "units"],
    &["paths"],
    &["inbound", "outbound", "receiver", "transmission"],
    &["extensions"],
    &["association"],
    &["endpoint"],
];

/// What a crate without I/O has no use for.
const FORBIDDEN: &[&str] = &[
    "UdpSocket",
    "TcpStream",
    "TcpListener",
    "ToSocketAddrs",
    "std::thread",
    "std::time::Instant",
    "SystemTime",
    "Instant::now",
    "std::fs",
    "std::env",
    "std::process",
    "tokio",
];

#[test]
fn modules_use_only_modules_above_them() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates live side by side");
    let policy = breaches_of(&crates.join("tresse-policy/src"), POLICY);
    let core = breaches_of(&crates.join("tresse-proto/src"), CORE);
    let breaches = [policy, core].concat();
    assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
}

fn breaches_of(source: &Path, layers: Layers) -> Vec<String> {
    let root = fs::read_to_string(source.join("lib.rs")).expect("the crate has a lib.rs");
    let exports = exported_items(&root);
    let mut breaches = Vec::new();
    for file in rust_files(source) {
        let inside = file.strip_prefix(source).expect("found below src");
        if inside == Path::new("lib.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file is readable text");
        breaches.extend(layer_breaches(inside, &text, &exports, layers));
    }
    breaches
}

#[test]
fn no_sockets_files_threads_or_clocks() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates live side by side");
    let mut breaches = Vec::new();
    for name in ["tresse-wire", "tresse-policy", "tresse-proto"] {
        for file in rust_files(&crates.join(name).join("src")) {
            let text = fs::read_to_string(&file).expect("a source file is readable text");
            breaches.extend(forbidden_words(&file, &text));
        }
    }
    assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
}

#[test]
fn the_check_sees_a_breach() {
    let exports = exported_items(
        "pub use endpoint::{Datagram, Endpoint};\npub use interface::association_id::AssociationId;\n",
    );
    let breaches = |file: &str, text: &str| layer_breaches(Path::new(file), text, &exports, CORE).len();
    // Upwards, sideways among vocabulary, and into the own module: fine.
    assert_eq!(
        breaches("paths/mod.rs", "use crate::config::Size;\nuse crate::{AssociationId, units::format_size};"),
        0
    );
    assert_eq!(breaches("interface/stats.rs", "use crate::units::format_size;"), 0);
    assert_eq!(breaches("inbound/window.rs", "use crate::inbound::Inbound;\nuse super::ordered;"), 0);
    assert_eq!(breaches("paths/mod.rs", "// crate::endpoint is told of it"), 0);
    // Downwards, sideways, through a group, a re-export, a long path, and `super`.
    assert_eq!(breaches("paths/mod.rs", "use crate::association::State;"), 1);
    assert_eq!(breaches("inbound/mod.rs", "use crate::receiver::Receiver;"), 1);
    assert_eq!(
        breaches("paths/mod.rs", "use crate::{\n    config::Size,\n    outbound::{Outbound, Group},\n};"),
        1
    );
    assert_eq!(breaches("receiver/mod.rs", "use crate::Datagram;"), 1);
    assert_eq!(breaches("units.rs", "fn now() -> u8 { crate::endpoint::NOW }"), 1);
    assert_eq!(breaches("config/path/mod.rs", "use super::super::paths::Path;"), 1);
    // A module that the table does not know.
    assert_eq!(breaches("attic/mod.rs", ""), 1);
    assert_eq!(breaches("paths/mod.rs", "use crate::attic::Trunk;"), 1);
    assert_eq!(forbidden_words(Path::new("a.rs"), "let t = std::time::Instant::now();").len(), 2);
    assert_eq!(forbidden_words(Path::new("a.rs"), "// no SystemTime here\nuse std::net::IpAddr;").len(), 0);
}

/// Breaches in the text of one file, whose path is relative to `src`; each names file and line.
fn layer_breaches(
    file: &Path,
    text: &str,
    exports: &BTreeMap<String, String>,
    layers: Layers,
) -> Vec<String> {
    let shown = Path::new("src").join(file);
    let mut parts: Vec<String> =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    parts.pop_if(|last| last == "mod");
    let own = &parts[0];
    let Some(own_layer) = layer(layers, own) else {
        return vec![format!("{}: module `{own}` is on no line", shown.display())];
    };
    let text = without_comments(text);
    let supers = "super::".repeat(parts.len());
    let mut breaches = Vec::new();
    for root in ["crate::", &supers] {
        for (at, _) in text.match_indices(root) {
            let line = text[..at].matches('\n').count() + 1;
            for name in first_names(&text[at + root.len()..]) {
                let used = exports.get(&name).unwrap_or(&name);
                let allowed = match layer(layers, used) {
                    Some(0) if own_layer == 0 => true,
                    Some(layer) => used == own || layer < own_layer,
                    // A macro or an item of lib.rs itself; below `super`, an item of an enclosing test module.
                    None => root == supers || !used.starts_with(char::is_lowercase),
                };
                if !allowed {
                    breaches.push(format!("{}:{line}: `{own}` may not use `{used}`", shown.display()));
                }
            }
        }
    }
    breaches
}

fn forbidden_words(file: &Path, text: &str) -> Vec<String> {
    let text = without_comments(text);
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for word in FORBIDDEN.iter().filter(|word| line.contains(**word)) {
            found.push(format!("{}:{}: `{word}` in a crate without I/O", file.display(), number + 1));
        }
    }
    found
}

fn layer(layers: Layers, module: &str) -> Option<usize> {
    layers.iter().position(|modules| modules.contains(&module))
}

/// The first segments of the paths at the start of `text`: one, or those of a brace group.
fn first_names(text: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(group) = text.strip_prefix('{') else { return vec![name(text)] };
    let (mut names, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, symbol) in group.char_indices() {
        match symbol {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(name(&group[start..at]));
                start = at + 1;
                if symbol == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Items that lib.rs re-exports, with the module that each comes from.
fn exported_items(root: &str) -> BTreeMap<String, String> {
    let mut items = BTreeMap::new();
    for statement in without_comments(root).split(';') {
        let Some((_, path)) = statement.split_once("pub use ") else { continue };
        let Some((module, rest)) = path.split_once("::") else { continue };
        for name in first_names(rest.rsplit_once("::").map_or(rest, |(_, last)| last)) {
            items.insert(name, module.trim().to_owned());
        }
    }
    items
}

fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// All Rust files below `directory`, in a fixed order.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a source directory is readable");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable entry").path()).collect();
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
