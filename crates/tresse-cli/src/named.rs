//! The other side as a command line names it. Names are looked up when it is called: no command line is wrong because a name
//! server does not answer, and a host may have other addresses at the next call.

use std::net::IpAddr;
use std::str::FromStr;

use tresse::host::{NameError, Remote};

use crate::failure::Failure;

/// An address, or a name that stands for addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Named {
    text: String,
    /// Of a name, as it was looked up last.
    found: Option<Remote>,
    /// An address stays what it is.
    is_address: bool,
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if inner.parse::<IpAddr>().is_ok() {
            let found = text.parse::<Remote>().map_err(|error| error.to_string())?;
            return Ok(Named { text: inner.to_owned(), found: Some(found), is_address: true });
        }
        // The interface of an address on one link may come yet, as what a name stands for.
        let on_link = inner.split_once('%').is_some_and(|(address, _)| address.parse::<IpAddr>().is_ok());
        let in_names = |character: char| character.is_alphanumeric() || "-_.".contains(character);
        if !on_link && (text.is_empty() || !text.chars().all(in_names)) {
            return Err("it is no IP address or host name, such as 192.0.2.1, 2001:db8::1 or server.example"
                .to_owned());
        }
        Ok(Named { text: text.to_owned(), found: None, is_address: false })
    }
}

impl From<IpAddr> for Named {
    fn from(address: IpAddr) -> Self {
        Named { text: address.to_string(), found: Some(Remote::from(address)), is_address: true }
    }
}

impl Named {
    /// Asks the system, and waits for its answer.
    fn looked_up(self) -> Result<Self, NameError> {
        match self.is_address {
            true => Ok(self),
            false => Ok(Named { found: Some(self.text.parse()?), ..self }),
        }
    }
}

/// Looks all names up anew.
///
/// # Errors
/// One that stands for nothing now; none is changed then.
pub(crate) async fn look_up(these: &mut Vec<Named>) -> Result<(), Failure> {
    if these.iter().all(|one| one.is_address) {
        return Ok(());
    }
    let names = these.clone();
    let asking = move || names.into_iter().map(Named::looked_up).collect::<Result<Vec<_>, _>>();
    let answers = tokio::task::spawn_blocking(asking).await;
    *these = answers.map_err(Failure::running)?.map_err(Failure::unresolved)?;
    Ok(())
}

/// Addresses that they stand for, as far as these were looked up.
pub(crate) fn found(these: &[Named]) -> Vec<Remote> {
    these.iter().filter_map(|one| one.found.clone()).collect()
}

/// Names and addresses as a person types them.
pub(crate) fn list(these: &[Named]) -> String {
    these.iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_judged_without_asking_for_names() {
        let unknown = format!("{}.invalid", "a".repeat(64));
        for name in [unknown.as_str(), "server", "fe80::1%no-such-0", "[fe80::1%no-such-0]"] {
            let named: Named = name.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((named.found.is_none(), list(&[named])), (true, name.to_owned()));
        }
        for wrong in ["0.0.0.0", "[::]", "no such name", "", "a:b", "fe80:%x"] {
            assert!(wrong.parse::<Named>().is_err(), "{wrong:?}");
        }
        let address: Named = " [2001:db8::1] ".parse().expect("an address");
        assert_eq!(list(std::slice::from_ref(&address)), "2001:db8::1");
        let all = Remote::all_of(&found(&[address]));
        assert_eq!(all, ["2001:db8::1".parse::<IpAddr>().expect("an address")]);
    }

    #[tokio::test]
    async fn a_name_that_is_not_found_changes_nothing() {
        let unknown = format!("{}.invalid", "a".repeat(64));
        let mut these: Vec<Named> =
            ["localhost", &unknown].map(|name| name.parse().expect("a name")).into_iter().collect();
        let failure = look_up(&mut these).await.expect_err("nobody has this name");
        assert_eq!(failure.exit_code(), 3);
        assert!(found(&these).is_empty());
        these.pop();
        look_up(&mut these).await.expect("every host has it");
        let here = IpAddr::from([127, 0, 0, 1]);
        assert!(Remote::all_of(&found(&these)).contains(&here));
    }
}
