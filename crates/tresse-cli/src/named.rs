//! Names and addresses of the two sides on a command line. Names are not looked up when the command line is read, but before an
//! association is opened or accepted: no command line is wrong because a name server does not answer, and a host may have other addresses
//! later.

use std::net::IpAddr;
use std::str::FromStr;

use tresse::host::{Local, NameError, Remote};

use crate::failure::Failure;
use crate::output;

/// An address, or a name that stands for addresses, of one side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Named<T> {
    text: String,
    /// The address; of a name, the result of the last successful look-up.
    found: Option<T>,
    /// True for an address or `auto`, which needs no look-up.
    is_address: bool,
    /// True if the name was not found by the last look-up, and the user was warned.
    is_missed: bool,
}

/// One of the two sides of an association.
pub(crate) trait Side: FromStr<Err = NameError> + From<IpAddr> + Clone + Send + 'static {
    /// Word that leaves the addresses to the host.
    const AUTO: Option<&'static str>;
    /// Accepted forms and examples, for errors.
    const EXAMPLES: &'static str;

    /// Returns whether `name` can be a name of this side.
    fn may_be(name: &str) -> bool;
}

impl Side for Remote {
    const AUTO: Option<&'static str> = None;
    const EXAMPLES: &'static str =
        "IP address or host name, such as 192.0.2.1, 2001:db8::1 or server.example";

    fn may_be(name: &str) -> bool {
        // An address with an interface (`%`) is accepted as a name, because the interface may come up later.
        let on_link = name.trim_start_matches('[').split_once('%');
        let in_names = |character: char| character.is_alphanumeric() || "-_.".contains(character);
        on_link.is_some_and(|(address, _)| address.parse::<IpAddr>().is_ok())
            || (!name.is_empty() && name.chars().all(in_names))
    }
}

impl Side for Local {
    const AUTO: Option<&'static str> = Some("auto");
    const EXAMPLES: &'static str =
        "IP address, interface or host name, such as 192.0.2.1, 2001:db8::1 or eth0";

    fn may_be(name: &str) -> bool {
        // Some systems have interfaces with spaces in their names.
        !name.is_empty()
    }
}

impl<T: Side> FromStr for Named<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if inner.parse::<IpAddr>().is_ok() || T::AUTO == Some(text) {
            let found = text.parse::<T>().map_err(|error| error.to_string())?;
            return Ok(Named {
                text: inner.to_owned(),
                found: Some(found),
                is_address: true,
                is_missed: false,
            });
        }
        match T::may_be(text) {
            true => Ok(Named { text: text.to_owned(), found: None, is_address: false, is_missed: false }),
            false => Err(format!("it is no {}", T::EXAMPLES)),
        }
    }
}

impl<T: Side> From<IpAddr> for Named<T> {
    fn from(address: IpAddr) -> Self {
        Named { text: address.to_string(), found: Some(T::from(address)), is_address: true, is_missed: false }
    }
}

impl<T: Side> Named<T> {
    /// Looks up the name, and blocks meanwhile. A name that is not found keeps its former addresses.
    fn look_up(&mut self) -> Result<(), NameError> {
        if !self.is_address {
            self.found = Some(self.text.parse()?);
            self.is_missed = false;
        }
        Ok(())
    }
}

/// Looks up the names of both sides.
///
/// # Errors
/// An own name has no address; or no name of the other side has one; or one of these has none, and own addresses are paired with them by
/// position.
pub(crate) async fn look_up_both(
    others: &mut Vec<Named<Remote>>,
    own: &mut Vec<Named<Local>>,
) -> Result<(), Failure> {
    look_up_others(others, own.len() > 1).await?;
    look_up_own(own).await
}

/// Looks up all names of this side.
///
/// # Errors
/// A name has no address, neither from this look-up nor from an earlier one.
pub(crate) async fn look_up_own(these: &mut Vec<Named<Local>>) -> Result<(), Failure> {
    match look_up(these).await?.into_iter().find(|&(at, _)| these[at].found.is_none()) {
        Some((_, error)) => Err(Failure::unresolved(error)),
        None => Ok(()),
    }
}

/// Looks up all names of the other side. A name without an address is left out with a warning, if another name has one and own addresses
/// are not `paired` with them by position.
///
/// # Errors
/// No name has an address, or a name that may not be left out has none.
async fn look_up_others(these: &mut Vec<Named<Remote>>, paired: bool) -> Result<(), Failure> {
    for (at, error) in look_up(these).await? {
        if found(these).is_empty() || paired && these[at].found.is_none() {
            return Err(Failure::unresolved(error));
        }
        let one = &mut these[at];
        if one.found.is_none() && !std::mem::replace(&mut one.is_missed, true) {
            output::say(&format!("{error}; going on without it"));
        }
    }
    Ok(())
}

/// Looks up all names again. Returns the positions of those that are not found, with the errors. If the future is dropped, nothing
/// changes.
async fn look_up<T: Side>(these: &mut Vec<Named<T>>) -> Result<Vec<(usize, NameError)>, Failure> {
    if these.iter().all(|one| one.is_address) {
        return Ok(Vec::new());
    }
    let mut names = these.clone();
    let asking = move || {
        let errors = names.iter_mut().enumerate().filter_map(|(at, one)| Some((at, one.look_up().err()?)));
        (errors.collect(), names)
    };
    let (errors, names) = tokio::task::spawn_blocking(asking).await.map_err(Failure::running)?;
    *these = names;
    Ok(errors)
}

/// Returns whether each name has an address, or was left out with a warning.
pub(crate) fn are_looked_up<T>(these: &[Named<T>]) -> bool {
    these.iter().all(|one| one.found.is_some() || one.is_missed)
}

/// Returns whether all of them are fixed addresses: neither names nor `auto`.
pub(crate) fn are_addresses<T: Side>(these: &[Named<T>]) -> bool {
    these.iter().all(|one| one.is_address && T::AUTO != Some(one.text.as_str()))
}

/// Returns the addresses found so far.
pub(crate) fn found<T: Side>(these: &[Named<T>]) -> Vec<T> {
    these.iter().filter_map(|one| one.found.clone()).collect()
}

/// Returns names and addresses in the syntax of the options, separated by commas.
pub(crate) fn list<T>(these: &[Named<T>]) -> String {
    these.iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_judged_without_asking_for_names() {
        let unknown = format!("{}.invalid", "a".repeat(64));
        for name in [unknown.as_str(), "server", "fe80::1%no-such-0", "[fe80::1%no-such-0]"] {
            let named: Named<Remote> = name.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((named.found.is_none(), list(&[named])), (true, name.to_owned()));
        }
        for wrong in ["0.0.0.0", "[::]", "no such name", "", "a:b", "fe80:%x"] {
            assert!(wrong.parse::<Named<Remote>>().is_err(), "{wrong:?}");
        }
        let address: Named<Remote> = " [2001:db8::1] ".parse().expect("an address");
        assert_eq!(list(std::slice::from_ref(&address)), "2001:db8::1");
        let all = Remote::all_of(&found(&[address]));
        assert_eq!(all, ["2001:db8::1".parse::<IpAddr>().expect("an address")]);
    }

    #[test]
    fn own_names_may_be_those_of_interfaces_that_come_later() {
        for name in ["no-such-0", "Ethernet 2", "fe80::1%no-such-0", "a:b"] {
            let named: Named<Local> = name.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(found(&[named]).is_empty());
        }
        assert!("".parse::<Named<Local>>().is_err());
        let named: [Named<Local>; 2] = ["auto", "127.0.0.1"].map(|name| name.parse().expect("it is there"));
        assert_eq!(found(&named), [Local::Auto, Local::from(IpAddr::from([127, 0, 0, 1]))]);
    }

    #[tokio::test]
    async fn names_of_the_other_side_that_are_not_found_are_left_out_if_one_is() {
        let unknown = format!("{}.invalid", "a".repeat(64));
        let mut these: Vec<Named<Remote>> =
            [&unknown, "localhost"].map(|name| name.parse().expect("a name")).into_iter().collect();
        look_up_others(&mut these, false).await.expect("every host has the second one");
        assert!(these[0].is_missed && !these[1].is_missed && are_looked_up(&these));
        let here = IpAddr::from([127, 0, 0, 1]);
        assert!(Remote::all_of(&found(&these)).contains(&here));
        let failure = look_up_others(&mut these, true).await.expect_err("own addresses would change places");
        assert_eq!(failure.exit_code(), 3);
        these.pop();
        let failure = look_up_others(&mut these, false).await.expect_err("nobody has this name");
        assert_eq!(failure.exit_code(), 3);
        // The former address is used.
        these[0].found = Some(Remote::from(here));
        look_up_others(&mut these, false).await.expect("it was found before");
        assert_eq!(found(&these), [Remote::from(here)]);
    }

    #[tokio::test]
    async fn every_own_name_has_to_be_found() {
        let unknown = format!("{}.invalid", "a".repeat(64));
        let mut these: Vec<Named<Local>> =
            ["localhost", &unknown].map(|name| name.parse().expect("a name")).into_iter().collect();
        let failure = look_up_own(&mut these).await.expect_err("nobody has this name");
        assert_eq!(failure.exit_code(), 3);
        these.pop();
        look_up_own(&mut these).await.expect("every host has it");
    }
}
