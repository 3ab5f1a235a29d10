//! The layers of ARCHITECTURE.md, enforced: a module uses modules on the lines above its own, and
//! from the second line on never one beside it. No files of a crate use each other in a circle. Neither this crate nor
//! those below it, `tresse-wire` and `tresse-policy`, reach for sockets, files, threads or a clock.

use std::collections::{BTreeMap, BTreeSet};
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

#[test]
fn no_files_use_each_other_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates live side by side");
    let entries = fs::read_dir(crates).expect("a readable directory");
    for folder in entries.map(|entry| entry.expect("a readable entry").path()) {
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let source = folder.join("src");
        let files = rust_files(&source).into_iter().map(|file| {
            let text = fs::read_to_string(&file).expect("a source file is readable text");
            (file.strip_prefix(&source).expect("found below src").to_path_buf(), text)
        });
        let circles: Vec<Vec<String>> = circles(&uses(files))
            .iter()
            .map(|circle| circle.iter().map(|module| module.join("/")).collect())
            .collect();
        assert!(circles.is_empty(), "files of {name} use each other in a circle\n{circles:#?}");
    }
}

#[test]
fn the_check_sees_a_circle() {
    let found = |files: &[(&str, &str)]| {
        let files = files.iter().map(|&(file, text)| (PathBuf::from(file), text.to_owned()));
        circles(&uses(files)).iter().map(BTreeSet::len).collect::<Vec<_>>()
    };
    let (a, b) = ("use super::b::B;", "use crate::a::{self, A};");
    assert_eq!(found(&[("a.rs", a), ("b.rs", b)]), [2]);
    assert_eq!(
        found(&[("a.rs", a), ("b.rs", "fn f() { crate::c::f() }"), ("c.rs", "use crate::{a::A};")]),
        [3]
    );
    // By the name under which another module shows an item.
    assert_eq!(
        found(&[("m/mod.rs", "pub(crate) use a::A;"), ("m/a.rs", a), ("m/b.rs", "use super::A;")]),
        [2]
    );
    // One way, in a comment, in a unit test, and between a module and one inside it.
    assert_eq!(found(&[("a.rs", a), ("b.rs", "")]), []);
    assert_eq!(found(&[("a.rs", a), ("b.rs", "// crate::a::A")]), []);
    assert_eq!(found(&[("a.rs", a), ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}")]), []);
    assert_eq!(found(&[("m/mod.rs", "use b::B;"), ("m/b.rs", "use super::M;")]), []);
}

/// Path of a module from the root of its crate.
type Module = Vec<String>;

/// The modules that each module uses, without those that it is in and those inside it: they are one thing in several files.
fn uses(files: impl Iterator<Item = (PathBuf, String)>) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut texts = BTreeMap::new();
    for (file, text) in files {
        let mut module: Module =
            file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if module.contains(&"tests".to_owned()) || module[0] == "bin" {
            continue;
        }
        module.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
        let text = without_comments(&text);
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
        texts.insert(module, code);
    }
    let modules: BTreeSet<&Module> = texts.keys().collect();
    let (mut used, mut shown) = (BTreeMap::new(), BTreeMap::new());
    for (module, code) in &texts {
        let (imports, rest) = imports(code);
        let mut own: Vec<Module> = rooted_paths(&rest).filter_map(|path| absolute(module, path)).collect();
        for (public, path) in imports {
            // A module inside this one is named without a root.
            let child =
                [module.as_slice(), &[path.split("::").next().unwrap_or_default().to_owned()]].concat();
            let path = if modules.contains(&child) { format!("self::{path}") } else { path };
            let Some(path) = absolute(module, &path) else { continue };
            if public {
                shown.insert([module.as_slice(), &path[path.len() - 1..]].concat(), path);
            } else {
                own.push(path);
            }
        }
        used.insert(module.clone(), own);
    }
    let resolved = |mut path: Module| {
        // A name that a module shows stands for the item that it was imported from; the bound is for names of one another.
        for _ in 0..8 {
            let found = (1..=path.len()).find_map(|len| shown.get(&path[..len]).map(|target| (len, target)));
            let Some((len, target)) = found.filter(|(len, _)| !modules.contains(&path[..*len].to_vec()))
            else {
                break;
            };
            path = [target.as_slice(), &path[len..]].concat();
        }
        (0..=path.len()).rev().map(|len| path[..len].to_vec()).find(|module| modules.contains(module))
    };
    let apart = |a: &Module, b: &Module| !a.starts_with(b) && !b.starts_with(a);
    used.into_iter()
        .map(|(module, paths)| {
            let others =
                paths.into_iter().filter_map(resolved).filter(|other| apart(&module, other)).collect();
            (module, others)
        })
        .collect()
}

/// Groups of modules each of which reaches all others of its group.
fn circles(uses: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<BTreeSet<Module>> {
    let reach = |from: &Module| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
        while let Some(next) = left.pop() {
            left.extend(uses.get(next).into_iter().flatten().filter(|other| seen.insert((*other).clone())));
        }
        seen
    };
    let reached: BTreeMap<_, _> = uses.keys().map(|module| (module, reach(module))).collect();
    let circle = |module: &Module| -> BTreeSet<Module> {
        let others = reached[module].iter();
        others.filter(|other| reached.get(other).is_some_and(|back| back.contains(module))).cloned().collect()
    };
    uses.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

/// The paths that a file imports, each with whether it shows them to others, and the rest of its text.
fn imports(code: &str) -> (Vec<(bool, String)>, String) {
    let (mut found, mut rest) = (Vec::new(), String::new());
    for statement in code.split_inclusive(';') {
        let start = statement.match_indices("use ").map(|(at, _)| at).find(|&at| {
            let line = statement[..at].rsplit('\n').next().unwrap_or_default().trim();
            line.is_empty() || line.starts_with("pub")
        });
        let Some(start) = start else {
            rest.push_str(statement);
            continue;
        };
        let public = statement[..start].rsplit('\n').next().unwrap_or_default().trim().starts_with("pub");
        rest.push_str(&statement[..start]);
        found.extend(
            expanded(statement[start + 4..].trim_end_matches(';')).into_iter().map(|path| (public, path)),
        );
    }
    (found, rest)
}

/// The paths in an expression or a type that begin at the root of the crate or at a module around this one.
fn rooted_paths(code: &str) -> impl Iterator<Item = &str> {
    let part_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let starts = ["crate::", "super::", "self::"].into_iter().flat_map(|root| code.match_indices(root));
    let starts = starts.map(|(at, _)| at).filter(move |&at| !code[..at].ends_with(part_of_path));
    starts.map(move |at| code[at..].split(|c| !part_of_path(c)).next().unwrap_or_default())
}

/// The path from the root of the crate that `path` names in `module`; `None` if it leads out of the crate.
fn absolute(module: &Module, path: &str) -> Option<Module> {
    let mut parts = path.split("::").map(str::trim).filter(|part| !part.is_empty()).peekable();
    let mut found = match *parts.peek()? {
        "crate" => Vec::new(),
        "self" | "super" => module.clone(),
        _ => return None,
    };
    while let Some(part) = parts.next_if(|part| ["crate", "self", "super"].contains(part)) {
        if part == "super" {
            found.pop();
        }
    }
    found.extend(parts.filter(|part| *part != "self").map(str::to_owned));
    (!found.is_empty()).then_some(found)
}

/// The paths of an import, without groups and new names.
fn expanded(import: &str) -> Vec<String> {
    let Some((before, rest)) = import.split_once('{') else {
        return vec![import.split(" as ").next().unwrap_or_default().trim().to_owned()];
    };
    let group = rest.rsplit_once('}').map_or(rest, |(group, _)| group);
    let (mut paths, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, symbol) in group.char_indices().chain([(group.len(), ',')]) {
        match symbol {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let inner = expanded(&group[start..at]).into_iter().filter(|path| !path.is_empty());
                paths.extend(inner.map(|path| format!("{}{path}", before.trim())));
                start = at + 1;
            }
            _ => {}
        }
    }
    paths
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
