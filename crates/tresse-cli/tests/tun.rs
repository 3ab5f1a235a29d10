//! TUN devices and permissions: a device that its user may use needs no capability. It needs root and setpriv(1), and says so
//! where it cannot run.

#![cfg(target_os = "linux")]
#![allow(missing_docs, reason = "a test")]

mod common;
mod netns;

use std::process::Command;

use common::Running;
use netns::{Hosts, all_of_ip, said_in};

/// Begins a command without CAP_NET_ADMIN.
const WITHOUT: [&str; 3] = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"];

/// A host where commands can be run without the capability; `None` where that is not possible, which is said.
fn host(test: &str) -> Option<Hosts> {
    let hosts = Hosts::new(test, &["one"])?;
    let add = [format!("-n {} tuntap add dev probe mode tun", hosts.name(0))];
    let dropped = [&WITHOUT[..], &["ip", "link", "set", "lo", "down"]].concat();
    let works = [&WITHOUT[..], &["true"]].concat();
    if !all_of_ip(&add) || said_in(hosts.name(0), &works).is_none() {
        eprintln!("{test}: not run: it needs /dev/net/tun and setpriv(1)");
        return None;
    }
    assert!(said_in(hosts.name(0), &dropped).is_none(), "the capability is gone");
    Some(hosts)
}

/// A server with this device, without the capability.
fn server(hosts: &Hosts, device: &str) -> Running {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", hosts.name(0)]).args(WITHOUT).arg(env!("CARGO_BIN_EXE_tresse"));
    command.args(["tunnel", "server", "--listen", "127.0.0.1", "--port", "0", "--tun", device]);
    Running::of(command, Vec::new())
}

#[test]
fn a_device_that_was_made_for_its_user_needs_no_capability() {
    let Some(hosts) = host("tun-owner") else { return };
    let name = hosts.name(0);
    let made = [
        format!("-n {name} tuntap add dev own mode tun user root"),
        format!("-n {name} addr add 10.99.0.1/30 dev own"),
        format!("-n {name} link set own up mtu 1400"),
    ];
    assert!(all_of_ip(&made), "{made:?}");
    let mut running = server(&hosts, "own");
    let line = running.line_with("listening on");
    assert!(line.contains("IP packets of own"), "{line}");
    let shown = said_in(name, &["ip", "link", "show", "own"]).expect("it is there");
    assert!(shown.contains("mtu 1400") && shown.contains("LOWER_UP"), "left as it was, and in use: {shown}");
}

#[test]
fn what_a_device_lacks_is_said_where_it_cannot_be_done() {
    let Some(hosts) = host("tun-lacks") else { return };
    let name = hosts.name(0);
    let made = [format!("-n {name} tuntap add dev down mode tun user root")];
    assert!(all_of_ip(&made), "{made:?}");
    let mut running = server(&hosts, "down");
    let line = running.line_with("is down");
    assert!(line.contains("CAP_NET_ADMIN") && line.contains("ip link set down up"), "{line}");
    let done = server(&hosts, "none").finish();
    assert_eq!(done.code, Some(1), "it may come yet: {done:?}");
    assert!(done.stderr.contains("--tun none: ") && done.stderr.contains("ip tuntap add"), "{done:?}");
}

#[test]
fn a_device_that_is_removed_ends_the_tunnel() {
    let Some(hosts) = host("tun-removed") else { return };
    let name = hosts.name(0);
    assert!(all_of_ip(&[format!("-n {name} tuntap add dev own mode tun user root")]));
    let mut running = server(&hosts, "own");
    running.line_with("listening on");
    assert!(all_of_ip(&[format!("-n {name} link del own")]));
    let done = running.finish();
    assert_eq!(done.code, Some(1), "it may come again: {done:?}");
    assert!(done.stderr.contains("--tun own: the device was removed"), "{done:?}");
}
