//! The two sides as a command line names them. Names are looked up when one calls or is called: no command line is wrong because a
//! name server does not answer, and a host may have other addresses at the next call.

use std::net::IpAddr;
use std::str::FromStr;

use tresse::host::{Local, NameError, Remote};

use crate::failure::Failure;
use crate::output;

/// An address, or a name that stands for addresses, of one side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Named<T> {
    text: String,
    /// Of a name, as it was looked up last.
    found: Option<T>,
    /// An address stays what it is.
    is_address: bool,
    /// True if it was left out when the names were looked up last, and the user was told.
    is_missed: bool,
}

/// Side whose addresses names stand for.
pub(crate) trait Side: FromStr<Err = NameError> + From<IpAddr> + Clone + Send + 'static {
    /// Word that stands for addresses which are looked for later still.
    const AUTO: Option<&'static str>;
    /// Names that there may be.
    const EXAMPLES: &'static str;

    /// Returns whether there may be such a name.
    fn may_be(name: &str) -> bool;
}

impl Side for Remote {
    const AUTO: Option<&'static str> = None;
    const EXAMPLES: &'static str =
        "IP address or host name, such as 192.0.2.1, 2001:db8::1 or server.example";

    fn may_be(name: &str) -> bool {
        // The interface of an address on one link may come yet, as what a name stands for.
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
        // Interfaces of some systems have spaces in their names.
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
    /// Asks the system, and waits for its answer. A name that is not found keeps what it stood for before.
    fn look_up(&mut self) -> Result<(), NameError> {
        if !self.is_address {
            self.found = Some(self.text.parse()?);
            self.is_missed = false;
        }
        Ok(())
    }
}

/// Looks up what the names of both sides stand for now.
///
/// # Errors
/// An own name stands for nothing; or all of the other side do, or one of them where own addresses are paired with them by
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
/// One that stands for nothing.
pub(crate) async fn look_up_own(these: &mut Vec<Named<Local>>) -> Result<(), Failure> {
    match look_up(these).await?.into_iter().find(|&(at, _)| these[at].found.is_none()) {
        Some((_, error)) => Err(Failure::unresolved(error)),
        None => Ok(()),
    }
}

/// Looks up all names of the other side. One that stands for nothing is left out, with a warning, as long as another stands for
/// something, and unless own addresses are `paired` with them by position.
///
/// # Errors
/// All of them stand for nothing, or one that may not be left out does.
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

/// Looks all names up anew, and answers the places of those that are not found, with the reasons. Giving up the future changes
/// nothing.
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

/// Returns whether each of them stands for something, or is left out with a warning.
pub(crate) fn are_looked_up<T>(these: &[Named<T>]) -> bool {
    these.iter().all(|one| one.found.is_some() || one.is_missed)
}

/// Returns whether they are addresses, of which none can become another.
pub(crate) fn are_addresses<T: Side>(these: &[Named<T>]) -> bool {
    these.iter().all(|one| one.is_address && T::AUTO != Some(one.text.as_str()))
}

/// Addresses that they stand for, as far as these were looked up.
pub(crate) fn found<T: Side>(these: &[Named<T>]) -> Vec<T> {
    these.iter().filter_map(|one| one.found.clone()).collect()
}

/// Names and addresses as a person types them.
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
        // What it stood for before serves.
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
