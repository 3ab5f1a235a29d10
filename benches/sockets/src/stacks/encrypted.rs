//! tresse with a key that both ends have and trust, for the stack `encrypted`; without for the others.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;

use tresse::security::{Identity, Peers, Security};
use tresse::{Endpoint, EndpointConfig};

/// The keys of a stack.
pub(crate) fn keys(stack: &str) -> Result<Option<Arc<Security>>, Box<dyn Error>> {
    match stack {
        "encrypted" => {
            let identity = Identity::from_pem(KEY.as_bytes())?;
            let peers = Peers::new([identity.fingerprint()]);
            Ok(Some(Arc::new(Security::pinned(&identity, &peers)?)))
        }
        _ => Ok(None),
    }
}

/// An endpoint on any UDP port, with so many drivers.
pub(crate) fn bind(
    here: IpAddr,
    config: EndpointConfig,
    drivers: usize,
    keys: Option<Arc<Security>>,
) -> Result<Endpoint, Box<dyn Error>> {
    let builder = Endpoint::builder().local_addresses([here]).endpoint_config(config).drivers(drivers);
    Ok(match keys {
        Some(keys) => builder.security(keys).bind()?,
        None => builder.bind()?,
    })
}

/// Nobody's.
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJP+axG11XmgvLrYv+olMsafzdZgaOeZKB3OCGTKCnYr\n-----END PRIVATE KEY-----\n";
