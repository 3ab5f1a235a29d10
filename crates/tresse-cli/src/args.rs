//! Options that several commands have, and parsers of values. Runs no command, and knows none.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tresse::config::{AssociationConfig, Encryption, EndpointConfig};
use tresse::units;

use crate::failure::Failure;
use crate::output;
use crate::security::SecurityArgs;

#[derive(Args)]
pub(crate) struct TransportArgs {
    /// Bundle of settings to start from (`tresse switches` lists them)
    #[arg(long, default_value = "cmt")]
    preset: String,
    /// Change one setting of the transport, such as send_buffer=8MiB (`tresse switches` lists them)
    #[arg(long = "set", value_name = "SWITCH=VALUE", value_parser = key_value)]
    settings: Vec<(String, String)>,
}

/// Schedulers beside the built-in ones.
#[derive(Args)]
pub(crate) struct SchedulerArgs {
    /// Load a scheduler or congestion controller from a shared object, under the name that it exports (docs/schedulers.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) scheduler_so: Vec<PathBuf>,
}

impl TransportArgs {
    /// Returns the arguments for a preset without changes.
    pub(crate) fn of_preset(preset: &str) -> Self {
        TransportArgs { preset: preset.to_owned(), settings: Vec::new() }
    }

    /// Returns the settings of associations and of endpoints: the preset with the user's changes and nothing else.
    pub(crate) fn plain(
        &self,
        security: &SecurityArgs,
    ) -> Result<(AssociationConfig, EndpointConfig), Failure> {
        let mut config = AssociationConfig::preset(&self.preset).map_err(Failure::usage)?;
        let mut endpoint = EndpointConfig::default();
        let of_endpoints = EndpointConfig::describe();
        for (name, value) in &self.settings {
            let outcome = match of_endpoints.iter().any(|switch| switch.name == name) {
                true => endpoint.set(name, value),
                false => config.set(name, value),
            };
            outcome.map_err(Failure::usage)?;
        }
        config.check().map_err(Failure::usage)?;
        self.idle(&config, security).iter().for_each(|line| output::say(line));
        Ok((config, endpoint))
    }

    /// Returns one line for each of the user's settings that has no effect.
    fn idle(&self, config: &AssociationConfig, security: &SecurityArgs) -> Vec<String> {
        let mut config = config.clone();
        if security.encrypt() {
            // The endpoint will set this when it is bound with keys.
            config.encryption = Encryption::Require;
        }
        let line = |name: &String| {
            config.idle_beside(name).map(|beside| format!("--set {name} has no effect beside {beside}"))
        };
        self.settings.iter().filter_map(|(name, _)| line(name)).collect()
    }

    /// Returns settings for high throughput: the preset, then `BULK_SETTINGS`, then the user's changes.
    pub(crate) fn config(&self, security: &SecurityArgs) -> Result<AssociationConfig, Failure> {
        self.config_over(&[], security)
    }

    /// Like [`TransportArgs::config`], with `settings` between `BULK_SETTINGS` and the user's changes. Later ones have precedence.
    pub(crate) fn config_over(
        &self,
        settings: &[(&str, &str)],
        security: &SecurityArgs,
    ) -> Result<AssociationConfig, Failure> {
        let mut config = AssociationConfig::preset(&self.preset).map_err(Failure::usage)?;
        let user = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in BULK_SETTINGS.iter().chain(settings).copied().chain(user) {
            config.set(name, value).map_err(Failure::usage)?;
        }
        config.check().map_err(Failure::usage)?;
        self.idle(&config, security).iter().for_each(|line| output::say(line));
        Ok(config)
    }
}

#[derive(Args, Copy, Clone)]
pub(crate) struct OutputArgs {
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print errors and warnings only (and the result, with --json)
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Time after which a command ends by itself.
#[derive(Args, Copy, Clone)]
pub(crate) struct DurationArgs {
    /// End after this time; without it, once everything is done or the command is interrupted
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub(crate) duration: Option<Duration>,
}

/// Default SCTP port of the servers of this command.
pub(crate) const DEFAULT_SCTP_PORT: u16 = 5001;

/// Changes to the preset for transfers, measurements and tunnels: buffers that suffice for paths of some Gbit/s.
const BULK_SETTINGS: &[(&str, &str)] = &[("send_buffer", "4MiB"), ("receive_buffer", "4MiB")];

/// Returns the error of a command line in one line.
pub(crate) fn mistake(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let what = text.split("\n\n").next().unwrap_or_default();
    let line = what.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line).to_owned();
    OF_NUMBERS.iter().fold(line, |line, (parser, ours)| line.replace(parser, ours))
}

/// Messages of the standard library for text that is no number, and plain words for them.
const OF_NUMBERS: [(&str, &str); 4] = [
    ("invalid digit found in string", "it is not a whole number"),
    ("cannot parse integer from empty string", "it is not a whole number"),
    ("number too large to fit in target type", "the number is too large"),
    ("number too small to fit in target type", "the number is too small"),
];

pub(crate) fn address(text: &str) -> Result<IpAddr, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("\"{text}\" is not an IP address such as 192.0.2.1 or 2001:db8::1"))
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    units::parse_duration(text).map_err(|error| error.to_string())
}

pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be longer than nothing".to_owned()),
        longer => Ok(longer),
    }
}

pub(crate) fn rate(text: &str) -> Result<u64, String> {
    match units::parse_rate(text).map_err(|error| error.to_string())? {
        0 => Err("it must be more than nothing".to_owned()),
        more => Ok(more),
    }
}

pub(crate) fn positive_size(text: &str) -> Result<u64, String> {
    match units::parse_size(text).map_err(|error| error.to_string())? {
        0 => Err("it must be more than nothing".to_owned()),
        more => Ok(more),
    }
}

pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("\"{text}\" is not KEY=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn settings_of_the_user_win_over_those_of_transfers() {
        let settings = vec![("send_buffer".to_owned(), "1MiB".to_owned())];
        let args = TransportArgs { preset: "cmt".to_owned(), settings };
        let config = args.config(&SecurityArgs::default()).expect("sound");
        assert_eq!(config.send_buffer.0, 1 << 20);
        assert_eq!(config.receive_buffer.0, 4 << 20);
    }

    #[test]
    fn settings_of_encryption_have_an_effect_where_keys_are_given() {
        #[derive(Parser)]
        struct Both {
            #[command(flatten)]
            security: SecurityArgs,
            #[command(flatten)]
            transport: TransportArgs,
        }
        let idle = |keys: &[&str]| {
            let words = [&["tresse", "--set", "rekey_megabytes=4"][..], keys].concat();
            let Both { security, transport } = Both::try_parse_from(words).expect("a command line");
            transport.idle(&transport.config(&security).expect("sound"), &security)
        };
        assert_eq!(idle(&[]), ["--set rekey_megabytes has no effect beside encryption = off"]);
        assert!(idle(&["--secret-file", "x"]).is_empty());
        assert!(idle(&["--key", "x", "--peer", "y"]).is_empty());
    }
}
