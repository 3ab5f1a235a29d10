//! `tresse switches`: list of all settings with their defaults and accepted values, for people and for programs.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;
use tresse::config::{AssociationConfig, EndpointConfig, GROUPS, PRESETS, SwitchInfo};

use crate::failure::Failure;
use crate::output;

#[derive(Args)]
pub(crate) struct SwitchesArgs {
    /// Print the list as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &SwitchesArgs) -> Result<(), Failure> {
    let text = if args.json { format!("{:#}\n", document()) } else { plain() };
    output::print(&text)
}

fn shown(default: &str) -> &str {
    if default.is_empty() { "(empty)" } else { default }
}

fn plain() -> String {
    let mut text = String::new();
    let settings = AssociationConfig::describe();
    for group in GROUPS {
        let _ = writeln!(text, "Settings of an association: {}", group.name);
        group.select(&settings).for_each(|switch| write_switch(&mut text, switch));
        text.push('\n');
    }
    text.push_str("Settings of an endpoint\n");
    EndpointConfig::describe().iter().for_each(|switch| write_switch(&mut text, switch));
    text.push_str("\nPresets\n");
    for preset in PRESETS {
        let _ = writeln!(text, "  {}", preset.name);
        let _ = writeln!(text, "      {}", preset.doc);
        for (name, value) in preset.settings() {
            let _ = writeln!(text, "      {name} = {value}");
        }
    }
    text
}

fn write_switch(text: &mut String, switch: &SwitchInfo) {
    let _ = writeln!(text, "  {} = {}", switch.name, shown(&switch.default));
    let _ = writeln!(text, "      {} Accepts {}.", switch.doc, switch.accepted);
    for beside in AssociationConfig::idle_conditions(switch.name) {
        let _ = writeln!(text, "      No effect beside {beside}.");
    }
    for (name, doc) in &switch.choices {
        let _ = writeln!(text, "      {name}: {doc}");
    }
}

/// The version of the document (docs/schemas).
const SCHEMA: u32 = 1;

fn document() -> serde_json::Value {
    let switch = |info: SwitchInfo| json!({ "name": info.name, "default": info.default, "doc": info.doc, "accepts": info.accepted });
    let preset = |preset: &tresse::config::Preset| {
        let settings: serde_json::Map<_, _> =
            preset.settings().map(|(name, value)| (name.to_owned(), value.into())).collect();
        json!({ "name": preset.name, "doc": preset.doc, "settings": settings })
    };
    json!({
        "schema": SCHEMA,
        "association": AssociationConfig::describe().into_iter().map(switch).collect::<Vec<_>>(),
        "endpoint": EndpointConfig::describe().into_iter().map(switch).collect::<Vec<_>>(),
        "presets": PRESETS.iter().map(preset).collect::<Vec<_>>(),
    })
}
