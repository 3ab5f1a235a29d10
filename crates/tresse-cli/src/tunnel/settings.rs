//! The configuration file: the options of the command line by their names, in TOML.

use std::collections::BTreeMap;
use std::path::Path;

use clap::{CommandFactory, Parser};
use toml::{Table, Value};

use super::args::{Role, TunnelArgs};
use crate::args::mistake;
use crate::failure::{Failure, of_file};
use crate::input;

/// Options of a file, each with its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Settings {
    role: String,
    options: BTreeMap<String, Vec<String>>,
}

impl Settings {
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let text = input::read_text(file, LONGEST_FILE).map_err(|error| of_file(file.display(), &error))?;
        Settings::parse(&text).map_err(|what| Failure::usage(what).at(file.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
            format!("line {line}: {}", error.message().replace('\n', " "))
        })?;
        let role = match table.remove("role") {
            Some(Value::String(role)) if ROLES.contains(&role.as_str()) => role,
            _ => return Err("role must be \"server\" or \"client\"".to_owned()),
        };
        let known = options_of(&role);
        let mut options = BTreeMap::new();
        for (name, value) in table {
            let Some((_, takes_value)) = known.iter().find(|(known, _)| *known == name) else {
                let mut known: Vec<_> = known.into_iter().map(|(name, _)| name).collect();
                known.sort();
                return Err(format!("{name} is no option of a {role}; there are {}", known.join(", ")));
            };
            options.insert(name.clone(), values(&name, value, *takes_value)?);
        }
        Ok(Settings { role, options })
    }

    /// Returns the role, parsed from the options as from a command line.
    pub(super) fn role(&self) -> Result<Role, String> {
        let mut line = vec!["tunnel".to_owned(), self.role.clone()];
        for (name, values) in &self.options {
            for value in values {
                line.push(match value.as_str() {
                    // A switch has no value.
                    "" => format!("--{name}"),
                    value => format!("--{name}={value}"),
                });
            }
        }
        TunnelArgs::try_parse_from(line).map(|args| args.role).map_err(|error| mistake(&error))
    }

    /// Returns the options that differ from `before`, except those in `but`.
    pub(super) fn changed<'a>(&'a self, before: &'a Settings, but: &[&str]) -> Vec<&'a str> {
        let names = self.options.keys().chain(before.options.keys());
        let mut changed: Vec<&str> = names
            .filter(|name| self.options.get(*name) != before.options.get(*name))
            .map(String::as_str)
            .filter(|name| !but.contains(name))
            .collect();
        changed.sort_unstable();
        changed.dedup();
        if self.role != before.role {
            changed.push("role");
        }
        changed
    }
}

/// Returns the names of the options that a role has, and whether each takes a value.
fn options_of(role: &str) -> Vec<(String, bool)> {
    let tunnel = TunnelArgs::command();
    let options = tunnel.find_subcommand(role).into_iter().flat_map(clap::Command::get_arguments);
    let named =
        |option: &clap::Arg| Some((option.get_long()?.to_owned(), option.get_action().takes_values()));
    options.filter_map(named).collect()
}

/// Returns the values of an option: one, several, or from a table several `NAME=VALUE`. A switch has one empty value if it is on, and
/// otherwise none.
fn values(name: &str, value: Value, takes_value: bool) -> Result<Vec<String>, String> {
    let wanted = format!("{name}: a text, a whole number or an array of them is wanted");
    let plain = |value: &Value| match value {
        Value::String(text) if !text.is_empty() => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Boolean(truth) => Ok(truth.to_string()),
        _ => Err(wanted.clone()),
    };
    match value {
        Value::Boolean(_) if takes_value => Err(wanted),
        value if !takes_value && !value.is_bool() => Err(format!("{name}: true or false is wanted")),
        Value::Boolean(on) => Ok(if on { vec![String::new()] } else { Vec::new() }),
        Value::Array(values) => values.iter().map(plain).collect(),
        Value::Table(table) => {
            table.iter().map(|(key, value)| Ok(format!("{key}={}", plain(value)?))).collect()
        }
        value => Ok(vec![plain(&value)?]),
    }
}

/// Most bytes of a configuration file.
const LONGEST_FILE: u64 = 1 << 20;
const ROLES: [&str; 2] = ["server", "client"];

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        role = "client"
        to = ["127.0.0.1", "127.0.0.2"]
        tcp = "127.0.0.1:8080=web:80"
        udp = ["127.0.0.1:53", "127.0.0.1:54=dns:53"]
        once = true
        quiet = false
        connections = 7
        class = { 80 = "latency" }
        set = { send_buffer = "8MiB", sack_frequency = 1 }
    "#;

    #[test]
    fn a_file_says_what_a_command_line_would() {
        let settings = Settings::parse(FILE).expect("it is sound");
        let Ok(Role::Client(args)) = settings.role() else { panic!("a client") };
        assert_eq!((args.call.to.len(), args.tcp.len(), args.udp.len()), (2, 1, 2));
        assert!(args.once && !args.common.quiet);
        assert_eq!(args.common.connections, 7);
        let config = args.common.config(&args.call.security).expect("sound");
        assert_eq!((config.send_buffer.0, config.sack_frequency), (8 << 20, 1));
        assert!(config.interleaving, "what nobody changed is the tunnel's");
    }

    #[test]
    fn mistakes_are_named_with_what_would_be_accepted() {
        let said = |text: &str| Settings::parse(text).expect_err("it is wrong");
        assert!(said("role = 1").contains("\"server\" or \"client\""));
        assert!(said("role = \"server\"\nlisten = [").starts_with("line 2: "));
        let unknown = said("role = \"server\"\nsocks = \"127.0.0.1:1\"");
        assert!(unknown.starts_with("socks is no option of a server; there are allow, "), "{unknown}");
        assert_eq!(said("role = \"client\"\nonce = \"yes\""), "once: true or false is wanted");
        let no_value = "tcp: a text, a whole number or an array of them is wanted";
        assert_eq!(said("role = \"client\"\ntcp = true"), no_value);
        let wrong =
            Settings::parse("role = \"client\"\nto = \"127.0.0.1\"\ntcp = \"80\"").expect("it is TOML");
        let wrong = wrong.role().err().expect("no forward");
        assert!(wrong.contains("--tcp") && wrong.lines().count() == 1, "{wrong}");
    }

    #[test]
    fn flows_and_datagrams_that_would_end_at_once_are_refused() {
        for option in ["udp-idle", "udp-lifetime"] {
            let file = format!("{FILE}\n{option} = \"0s\"").replace("        ", "");
            let refused = Settings::parse(&file).expect("it is TOML").role().err().expect("no time at all");
            assert!(refused.contains(option) && refused.contains("longer than nothing"), "{refused}");
            let shortest = Settings::parse(&file.replace("\"0s\"", "\"1ms\"")).expect("it is TOML");
            assert!(shortest.role().is_ok());
        }
    }

    #[test]
    fn changes_are_found() {
        let before = Settings::parse(FILE).expect("it is sound");
        let after = FILE.replace("connections = 7", "").replace("127.0.0.1:53", "127.0.0.1:5353");
        let after = Settings::parse(&after).expect("it is sound");
        assert_eq!(after.changed(&before, &[]), ["connections", "udp"]);
        assert_eq!(after.changed(&before, &["udp"]), ["connections"]);
        assert!(before.changed(&before, &[]).is_empty());
    }
}
