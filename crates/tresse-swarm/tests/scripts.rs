//! Scripts that broke a rule once, shortened and kept: all of them are clean now.

use std::fs;
use std::path::Path;

use tresse_swarm::{Script, judge};

#[test]
fn scripts_that_failed_once_are_clean() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut played = 0;
    for entry in fs::read_dir(folder).expect("the folder of scripts") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a script");
        let script: Script = text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if let Err(breach) = judge(&script) {
            panic!("{} breaks a rule {breach}", path.display());
        }
        played += 1;
    }
    assert!(played > 0);
}
