//! docs/switches.md says what the configuration tables say. `make docs` writes it anew: it runs this
//! test with UPDATE_DOCS set.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use tresse_proto::config::{GROUPS, PRESETS, SwitchInfo};
use tresse_proto::{AssociationConfig, EndpointConfig};

const INTRODUCTION: &str = "\
# Switches

The reference of all settings of the transport. Every setting has a name, a default and a line of documentation. Scenarios set them
under `[transport]`, command lines with `--set name=value`, programs through `AssociationConfig::set` and `EndpointConfig::set`. An
unknown name is an error, whose message has the nearest valid name. Sizes and times have a unit: `64KiB`, `25ms`. Settings that only a
paper's figure or an ablation uses have the prefix `experiment.`; in scenarios they are in the table `[transport.experiment]`. If other
settings make a setting ineffective, a warning says so: `tresse: --set key_drain has no effect beside encryption = off`.

<!-- Written by `make docs` from crates/tresse-proto/src/config; edit the documentation there. -->
";

#[test]
fn the_page_is_what_the_tables_say() {
    let page = page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/switches.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, page).expect("docs/switches.md can be written");
        return;
    }
    let written = fs::read_to_string(&path).expect("docs/switches.md is there");
    assert!(written == page, "docs/switches.md is stale: run `make docs`");
}

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## Of an association\n");
    let settings = AssociationConfig::describe();
    for group in GROUPS {
        let _ = write!(page, "\n### {}\n\n{}", group.name, table(group.select(&settings)));
    }
    let _ = write!(page, "\n## Of an endpoint\n\n{}", table(&EndpointConfig::describe()));
    page.push_str("\n## Presets\n\nA preset sets these switches; the others keep their defaults.\n");
    for preset in PRESETS {
        let _ = write!(page, "\n**`{}`**: {}\n\n", preset.name, preset.doc);
        for (switch, value) in preset.settings() {
            let _ = writeln!(page, "- `{switch}` = `{value}`");
        }
        if preset.settings().next().is_none() {
            page.push_str("- all defaults\n");
        }
    }
    page
}

fn table<'s>(switches: impl IntoIterator<Item = &'s SwitchInfo>) -> String {
    let mut table = "| switch | default | accepts | what it does |\n| --- | --- | --- | --- |\n".to_owned();
    for switch in switches {
        let default =
            if switch.default.is_empty() { "(empty)".to_owned() } else { format!("`{}`", switch.default) };
        let choices: String =
            switch.choices.iter().map(|(name, doc)| format!("<br>`{name}`: {doc}")).collect();
        let accepted = if choices.is_empty() { &switch.accepted } else { "one of the names" };
        let beside: Vec<_> = AssociationConfig::idle_conditions(switch.name).collect();
        let idle = if beside.is_empty() {
            String::new()
        } else {
            format!(" No effect beside {}.", beside.join("; "))
        };
        let _ =
            writeln!(table, "| `{}` | {default} | {accepted} | {}{idle}{choices} |", switch.name, switch.doc);
    }
    table
}
