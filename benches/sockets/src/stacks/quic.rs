//! quinn with its defaults: writes of the length of a message to one stream. It encrypts, and keeps no boundaries.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quinn::{ClientConfig, Endpoint, ServerConfig};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::child::{Load, Tally};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const NAME: &str = "localhost";

pub(crate) fn serve(tally: &Arc<Tally>) -> Result<String, Box<dyn Error>> {
    let own = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let certificate = own.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    let endpoint = Endpoint::server(config, ANY)?;
    let hex: String = certificate.iter().map(|byte| format!("{byte:02x}")).collect();
    let address = format!("{} {hex}", endpoint.local_addr()?.port());
    let tally = Arc::clone(tally);
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let counter = tally.join();
            tokio::spawn(async move {
                let connection = incoming.await.ok()?;
                let mut stream = connection.accept_uni().await.ok()?;
                while let Ok(Some(chunk)) = stream.read_chunk(1 << 20, true).await {
                    counter.fetch_add(chunk.bytes.len() as u64, Ordering::Relaxed);
                }
                Some(())
            });
        }
    });
    Ok(address)
}

pub(crate) async fn send(load: Load) -> Result<(), Box<dyn Error>> {
    let [port, hex] = &load.server[..] else { return Err("a port and a certificate".into()) };
    let octets = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(octets.collect::<Result<Vec<u8>, _>>()?))?;
    let endpoint = Endpoint::client(ANY)?;
    let config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    let server = SocketAddr::new(ANY.ip(), port.parse()?);
    for _ in 0..load.count {
        let connection = endpoint.connect_with(config.clone(), server, NAME)?.await?;
        let mut stream = connection.open_uni().await?;
        let message = vec![0x5a; load.message];
        tokio::spawn(async move {
            let _connection = connection;
            while stream.write_all(&message).await.is_ok() {}
        });
    }
    Ok(())
}
