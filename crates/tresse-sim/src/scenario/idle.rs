//! Settings of a scenario that have no effect because of its other settings.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use toml::{Table, Value};
use tresse_proto::config::{ChunkRescheduling, RetransmitPath};
use tresse_proto::{AssociationConfig, Registry};

use super::{PathSpec, Resolved, Traffic};
use crate::link::{Discipline, LinkSpec};

/// A setting in the document without effect, and the settings that are the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct IdleSetting {
    /// The dotted key: `transport.key_drain`.
    pub key: String,
    /// The settings because of which it has no effect: `encryption = off`.
    pub beside: &'static str,
    late: bool,
}

impl IdleSetting {
    fn new(key: String, beside: &'static str) -> Self {
        IdleSetting { key, beside, late: false }
    }

    /// A setting that would act after the end of the run.
    fn late(key: String) -> Self {
        IdleSetting { key, beside: "settle and measure, which end before", late: true }
    }

    /// Returns whether it would act after the end of the run, which the network of an emulation does not have.
    pub fn is_late(&self) -> bool {
        self.late
    }
}

impl Display for IdleSetting {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no effect beside {}", self.key, self.beside)
    }
}

/// Returns the settings in `document` without effect: of the transport, of the paths, and of parts that paths share.
pub(super) fn idle_settings(document: &Table, resolved: &Resolved) -> Vec<IdleSetting> {
    let mut idle = of_transport(document, resolved);
    if resolved.loss_oracle && !reads_loss_rates(&resolved.sender) {
        let beside = "settings of the sender of which none reads loss rates";
        idle.push(IdleSetting::new("loss_oracle".to_owned(), beside));
    }
    let tables = document.get("path").and_then(Value::as_array).into_iter().flatten();
    let hosts_mark = resolved.sender.ecn && resolved.receiver.ecn;
    for (position, (table, path)) in tables.filter_map(Value::as_table).zip(&resolved.paths).enumerate() {
        idle.extend(of_path(&format!("path[{position}]"), table, path, hosts_mark));
    }
    let routers =
        !resolved.cross_traffic.is_empty() || resolved.paths.iter().any(|path| path.shares.is_some());
    let access = document.get("access").and_then(Value::as_table);
    if !routers && access.is_some_and(|access| !access.is_empty()) {
        let beside = "paths that have no cross traffic and share no links";
        idle.push(IdleSetting::new("access".to_owned(), beside));
    }
    let traffic = document.get("traffic").and_then(Value::as_table);
    idle.extend(traffic.into_iter().flat_map(|table| of_traffic(table, &resolved.traffic)));
    idle.extend(late(resolved).into_iter().map(IdleSetting::late));
    idle
}

/// Returns whether a policy of the sender reads the loss rates of paths: the choice of a path for retransmissions,
/// duplicates and reinjection do. So may path schedulers, but none of the built-in ones does.
fn reads_loss_rates(sender: &AssociationConfig) -> bool {
    let is_built_in = Registry::default().path_scheduler_names().contains(&sender.path_scheduler.as_str());
    let resends = [sender.timeout_retransmit_path, sender.fast_retransmit_path];
    !is_built_in
        || resends.contains(&RetransmitPath::LossRate)
        || sender.chunk_rescheduling != ChunkRescheduling::Off
        || sender.experiment.opportunistic_retransmission
}

/// Returns the keys of times after the end of the run; of the changes of a link, only the first.
fn late(resolved: &Resolved) -> Vec<String> {
    let end = resolved.settle + resolved.measure;
    let mut late = Vec::new();
    let mut add = |key: String, at: Option<Duration>| {
        if at.is_some_and(|at| at > end) {
            late.push(key);
        }
    };
    for (position, path) in resolved.paths.iter().enumerate() {
        add(format!("path[{position}].joins"), path.presence.joins);
        add(format!("path[{position}].leaves"), path.presence.leaves);
        // The other direction inherits changes, and paths that share links have those of their owner.
        let reverse = (path.backward.changes != path.forward.changes).then_some(&path.backward);
        let links = [("", Some(&path.forward)), ("reverse.", reverse)];
        for (side, link) in links.into_iter().filter(|_| path.shares.is_none()) {
            let changes = link.map_or(&[][..], |link| &link.changes);
            if let Some(first) = changes.iter().position(|change| change.at > end) {
                add(format!("path[{position}].{side}change[{first}]"), Some(changes[first].at));
            }
        }
    }
    for (position, cross) in resolved.cross_traffic.iter().enumerate() {
        add(format!("cross[{position}].start"), Some(cross.start));
        add(format!("cross[{position}].stop"), cross.stop);
    }
    add("traffic.stop".to_owned(), resolved.traffic.stop);
    late
}

/// Returns those of the transport, in the order of the document. A setting of both hosts is idle if it is idle at both.
fn of_transport(document: &Table, resolved: &Resolved) -> Vec<IdleSetting> {
    let hosts = [
        ("transport", vec![&resolved.sender, &resolved.receiver]),
        ("sender", vec![&resolved.sender]),
        ("receiver", vec![&resolved.receiver]),
    ];
    let mut idle = Vec::new();
    for (section, configs) in hosts {
        for name in names(document.get(section).and_then(|section| section.as_table())) {
            let beside: Option<Vec<_>> = configs.iter().map(|config| config.idle_beside(&name)).collect();
            if let Some(beside) = beside.and_then(|beside| beside.first().copied()) {
                idle.push(IdleSetting::new(format!("{section}.{name}"), beside));
            }
        }
    }
    idle
}

/// Returns those of a path, whose table is at `key`. A setting of both directions is idle if it is idle in both.
fn of_path(key: &str, table: &Table, path: &PathSpec, hosts_mark: bool) -> Vec<IdleSetting> {
    let reverse = table.get("reverse").and_then(Value::as_table);
    let mut idle: Vec<IdleSetting> = Vec::new();
    let mut add = |key: String, beside| {
        // An idle table is reported once, without the keys in it.
        let is_reported =
            |one: &IdleSetting| key.strip_prefix(&one.key).is_some_and(|rest| rest.starts_with('.'));
        if !idle.iter().any(is_reported) {
            idle.push(IdleSetting::new(key, beside));
        }
    };
    for setting in LINK {
        let holds = |link| (setting.holds)(link, hosts_mark);
        let own = reverse.is_some_and(|table| named(table, setting.name));
        // If a setting is a table, the reverse direction inherits the keys that its own table omits.
        let replaced = own && table.get(setting.name).is_none_or(|value| !value.is_table());
        if named(table, setting.name) && holds(&path.forward) && (replaced || holds(&path.backward)) {
            add(format!("{key}.{}", setting.name), setting.beside);
        }
        if own && holds(&path.backward) {
            add(format!("{key}.reverse.{}", setting.name), setting.beside);
        }
    }
    idle
}

/// Settings of a link that have no effect where `holds` returns true; its second argument is whether the hosts use ECN.
struct Idle {
    name: &'static str,
    beside: &'static str,
    holds: fn(&LinkSpec, bool) -> bool,
}

const LINK: &[Idle] = &[
    Idle {
        name: "red",
        beside: "a discipline other than red",
        holds: |link, _| !matches!(link.discipline, Discipline::Red(_)),
    },
    Idle {
        name: "codel",
        beside: "a discipline other than codel",
        holds: |link, _| !matches!(link.discipline, Discipline::CoDel(_)),
    },
    Idle {
        name: "red.ecn",
        beside: "ecn = false of a host",
        holds: |link, hosts_mark| !hosts_mark && !matches!(link.discipline, Discipline::Red(red) if !red.ecn),
    },
    Idle {
        name: "codel.ecn",
        beside: "ecn = false of a host",
        holds: |link, hosts_mark| {
            !hosts_mark && !matches!(link.discipline, Discipline::CoDel(codel) if !codel.ecn)
        },
    },
    Idle {
        name: "bit_errors_spare",
        beside: "bit_error_rate = 0",
        // A resolved scenario contains `bit_errors_spare = 0` for a link without errors, so that value is not reported.
        holds: |link, _| link.impairments.bit_error_rate == 0.0 && link.impairments.bit_errors_spare > 0,
    },
    Idle {
        name: "reorder_delay",
        beside: "reorder = 0",
        holds: |link, _| link.impairments.reordering.is_none_or(|late| late.probability == 0.0),
    },
    Idle {
        name: "reorder",
        beside: "reorder_delay = 0s",
        holds: |link, _| link.impairments.reordering.is_some_and(|late| late.extra_delay.is_zero()),
    },
];

/// Returns whether a table contains the setting `name`, which may be `table.key`.
fn named(table: &Table, name: &str) -> bool {
    match name.split_once('.') {
        None => table.get(name).is_some_and(|value| value.as_table().is_none_or(|inner| !inner.is_empty())),
        Some((inner, key)) => {
            table.get(inner).and_then(Value::as_table).is_some_and(|inner| inner.contains_key(key))
        }
    }
}

/// Returns the settings of the traffic that apply to no stream.
fn of_traffic(table: &Table, traffic: &Traffic) -> Vec<IdleSetting> {
    let saturated = traffic.saturated().len();
    let defaults = Traffic::default();
    let idle = [
        ("message_size", saturated == 0 && traffic.message_size != defaults.message_size),
        ("refill", saturated == 0 && traffic.refill != defaults.refill),
    ];
    let beside = "sporadic messages on every stream";
    let idle = idle.into_iter().filter(|(name, holds)| *holds && table.contains_key(*name));
    idle.map(|(name, _)| IdleSetting::new(format!("traffic.{name}"), beside)).collect()
}

/// Returns the names of the settings in a section; those in a group have the form `group.name`.
fn names(section: Option<&Table>) -> Vec<String> {
    let mut names = Vec::new();
    for (name, value) in section.into_iter().flatten() {
        match value.as_table() {
            Some(group) => names.extend(group.keys().map(|own| format!("{name}.{own}"))),
            None => names.push(name.clone()),
        }
    }
    names
}
