//! Findings about this host alone: interfaces, filters, buffers, offloads, clocks, processors, rights.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::time::{Duration, Instant};

use tresse::host::{self, HostAddress};
use tresse::{AssociationConfig, BindError, Endpoint, EndpointConfig};

use super::{Finding, State};

/// Performs all checks that need no peer, on the interfaces of the addresses `local`.
pub(super) fn look(local: &[IpAddr]) -> Vec<Finding> {
    let all = host::addresses().unwrap_or_default();
    let used: Vec<_> = all.into_iter().filter(|one| local.contains(&one.address)).collect();
    let names: BTreeSet<&str> = used.iter().map(|one| one.interface.as_str()).collect();
    let mut findings = vec![interfaces(&used)];
    findings.extend(names.iter().map(|name| reverse_path(name, names.len(), &setting)));
    findings.extend(["rmem_max", "wmem_max"].map(|name| buffer(name, &setting)));
    findings.extend(names.iter().map(|name| offloads(name)));
    findings.extend([wake_ups(), clock(&file), governor(&file), raw_ip()]);
    findings
}

fn interfaces(used: &[HostAddress]) -> Finding {
    let names: BTreeSet<&str> = used.iter().map(|one| one.interface.as_str()).collect();
    let list: Vec<_> = used.iter().map(|one| format!("{} ({})", one.address, one.interface)).collect();
    match names.len() {
        0 => Finding::new("interfaces", State::Bad, "none is up with an address that others can reach"),
        1 => {
            Finding::new("interfaces", State::Poor, format!("{}: all paths share one link", list.join(", ")))
        }
        _ => Finding::new("interfaces", State::Well, list.join(", ")),
    }
}

/// Checks the reverse-path filter. A strict one drops a packet that arrives on another interface than that of the route to its source
/// (RFC 3704).
fn reverse_path(name: &str, interfaces: usize, setting: &dyn Fn(&str) -> Option<String>) -> Finding {
    let value = |of: &str| setting(&format!("net/ipv4/conf/{of}/rp_filter"))?.parse::<u32>().ok();
    let check = "reverse-path filter";
    let Some(mode) = value("all").max(value(name)) else {
        return Finding::new(check, State::Unknown, format!("{name}: the system does not say"));
    };
    match mode {
        1 if interfaces > 1 => Finding::new(
            check,
            State::Bad,
            format!("{name}: strict, so packets for it are dropped unless the best route to their sender leaves by it"),
        )
        .mended_by(format!("sysctl -w net.ipv4.conf.{name}.rp_filter=2")),
        1 => Finding::new(check, State::Well, format!("{name}: strict, which one interface bears")),
        2 => Finding::new(check, State::Well, format!("{name}: loose")),
        _ => Finding::new(check, State::Well, format!("{name}: off")),
    }
}

fn buffer(name: &str, setting: &dyn Fn(&str) -> Option<String>) -> Finding {
    let check = if name == "rmem_max" { "receive buffer of sockets" } else { "send buffer of sockets" };
    match setting(&format!("net/core/{name}")).and_then(|text| text.parse::<u64>().ok()) {
        None => Finding::new(check, State::Unknown, "the system does not say"),
        Some(bytes) if bytes < WANTED_BUFFER => Finding::new(
            check,
            State::Poor,
            format!(
                "at most {bytes} bytes: packets are dropped at some hundred Mbit/s while the process is busy"
            ),
        )
        .mended_by(format!("sysctl -w net.core.{name}={WANTED_BUFFER}")),
        Some(bytes) => Finding::new(check, State::Well, format!("up to {bytes} bytes")),
    }
}

/// Checks the offloads of the interface, as `ethtool` lists them.
fn offloads(name: &str) -> Finding {
    let check = "offloads";
    let Ok(said) = Command::new("ethtool").args(["-k", name]).output() else {
        return Finding::new(check, State::Unknown, format!("{name}: the command ethtool is not installed"));
    };
    if !said.status.success() {
        return Finding::new(check, State::Unknown, format!("{name}: ethtool has no answer"));
    }
    offloads_of(name, &String::from_utf8_lossy(&said.stdout))
}

fn offloads_of(name: &str, said: &str) -> Finding {
    let wanted = [
        ("generic-segmentation-offload", "gso"),
        ("generic-receive-offload", "gro"),
        ("tx-checksumming", "tx"),
        ("rx-checksumming", "rx"),
    ];
    let is_off = |feature: &str| {
        let line = said.lines().find_map(|line| line.trim().strip_prefix(feature)?.strip_prefix(':'));
        // An offload that is fixed (`off [fixed]`) cannot be switched on.
        line.is_some_and(|value| value.trim() == "off")
    };
    let off: Vec<_> = wanted.iter().filter(|(feature, _)| is_off(feature)).collect();
    if off.is_empty() {
        return Finding::new(
            "offloads",
            State::Well,
            format!("{name}: segmentation, receive and checksums are on"),
        );
    }
    let features: Vec<_> = off.iter().map(|(feature, _)| *feature).collect();
    let switches: Vec<_> = off.iter().map(|(_, switch)| format!("{switch} on")).collect();
    Finding::new("offloads", State::Poor, format!("{name}: {} off", features.join(", ")))
        .mended_by(format!("ethtool -K {name} {}", switches.join(" ")))
}

/// Measures the lateness of wake-ups from sleeps of a millisecond, on which pacing depends.
fn wake_ups() -> Finding {
    let mut late: Vec<Duration> = (0..LOOKS)
        .map(|_| {
            let begin = Instant::now();
            std::thread::sleep(NAP);
            begin.elapsed().saturating_sub(NAP)
        })
        .collect();
    late.sort_unstable();
    let (median, worst) = (late[LOOKS / 2], late[LOOKS * 95 / 100]);
    let says = format!(
        "a sleep of 1 ms ends {:.2} ms late in the median, {:.2} ms in one of twenty",
        median.as_secs_f64() * 1e3,
        worst.as_secs_f64() * 1e3
    );
    let state = if worst > LATE { State::Poor } else { State::Well };
    Finding::new("wake-ups", state, says)
}

fn clock(file: &dyn Fn(&str) -> Option<String>) -> Finding {
    let folder = "/sys/devices/system/clocksource/clocksource0";
    let Some(source) = file(&format!("{folder}/current_clocksource")) else {
        return Finding::new("clock", State::Unknown, "the system does not say which it uses");
    };
    match source.as_str() {
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" => {
            let finding =
                Finding::new("clock", State::Poor, format!("{source}: reading it is slow or coarse"));
            let others = file(&format!("{folder}/available_clocksource")).unwrap_or_default();
            match others.split(' ').find(|other| ["tsc", "kvm-clock", "arch_sys_counter"].contains(other)) {
                Some(other) => finding.mended_by(format!("echo {other} > {folder}/current_clocksource")),
                None => finding,
            }
        }
        _ => Finding::new("clock", State::Well, source),
    }
}

fn governor(file: &dyn Fn(&str) -> Option<String>) -> Finding {
    match file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").as_deref() {
        None => Finding::new("processor's governor", State::Unknown, "the system has none, or does not say"),
        Some("powersave" | "conservative") => Finding::new(
            "processor's governor",
            State::Poor,
            "it saves power: wake-ups and bursts are slower",
        )
        .mended_by("cpupower frequency-set -g performance"),
        Some(other) => Finding::new("processor's governor", State::Well, other),
    }
}

fn raw_ip() -> Finding {
    let config = EndpointConfig::default().with(|c| c.port = 0);
    let here = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
    let check = "raw IP (--raw)";
    match Endpoint::bind_raw(&here, config, AssociationConfig::default()) {
        Ok(_) => Finding::new(check, State::Well, "this process may open raw sockets"),
        Err(BindError::RawNotPermitted) => {
            Finding::new(check, State::Well, "not for this user; SCTP in UDP needs no privilege")
        }
        Err(error) => Finding::new(check, State::Unknown, error.to_string()),
    }
}

fn setting(name: &str) -> Option<String> {
    file(&format!("/proc/sys/{name}"))
}

fn file(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Buffer that the sockets of this command request, in bytes.
const WANTED_BUFFER: u64 = 4 << 20;
const NAP: Duration = Duration::from_millis(1);
const LOOKS: usize = 100;
/// Lateness for which pacing compensates.
const LATE: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_filters_matter_where_there_are_two_interfaces() {
        let strict = |name: &str| Some(if name.contains("/all/") { "1" } else { "0" }.to_owned());
        let finding = reverse_path("wlan0", 2, &strict);
        assert_eq!(finding.state, State::Bad);
        assert_eq!(finding.mend.as_deref(), Some("sysctl -w net.ipv4.conf.wlan0.rp_filter=2"));
        assert_eq!(reverse_path("wlan0", 1, &strict).state, State::Well);
        assert_eq!(reverse_path("wlan0", 2, &|_| Some("2".to_owned())).state, State::Well);
        assert_eq!(reverse_path("wlan0", 2, &|_| None).state, State::Unknown);
    }

    #[test]
    fn small_buffers_and_slow_clocks_are_named_with_what_mends_them() {
        let finding = buffer("rmem_max", &|_| Some("212992".to_owned()));
        assert_eq!(finding.mend.as_deref(), Some("sysctl -w net.core.rmem_max=4194304"));
        assert_eq!(buffer("wmem_max", &|_| Some("4194304".to_owned())).state, State::Well);
        let slow = |path: &str| {
            Some(if path.ends_with("current_clocksource") { "hpet" } else { "tsc hpet" }.to_owned())
        };
        assert!(clock(&slow).mend.is_some_and(|command| command.starts_with("echo tsc >")));
        assert_eq!(clock(&|_| Some("tsc".to_owned())).state, State::Well);
        assert_eq!(governor(&|_| Some("powersave".to_owned())).state, State::Poor);
        assert_eq!(governor(&|_| None).state, State::Unknown);
    }

    #[test]
    fn an_offload_that_is_fixed_is_nobodys_fault() {
        let said = "Features for eth0:\nrx-checksumming: off [fixed]\ngeneric-segmentation-offload: off\n";
        let finding = offloads_of("eth0", said);
        assert_eq!(finding.mend.as_deref(), Some("ethtool -K eth0 gso on"));
        assert_eq!(offloads_of("eth0", "generic-segmentation-offload: on\n").state, State::Well);
    }
}
