//! The part of HTTP (RFC 9112) that monitoring of a tunnel needs: GET of a few documents, with a connection for each.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// A document: its type and its text.
pub(super) type Document = (&'static str, String);

/// Serves the documents that `find` returns; never returns.
pub(super) async fn serve(
    listener: TcpListener,
    find: impl Fn(&str) -> Option<Document> + Clone + Send + 'static,
) -> Infallible {
    let mut readers: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((tcp, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        readers.retain(|reader| !reader.is_finished());
        // Idle connections must not keep others out, so the oldest one is closed.
        if readers.len() >= MOST_READERS
            && let Some(oldest) = readers.pop_front()
        {
            oldest.abort();
        }
        let find = find.clone();
        let reader = tokio::spawn(async move {
            // A client that is too slow, or uses another protocol, gets no answer.
            let _ = timeout(PATIENCE, answer(tcp, find)).await;
        });
        readers.push_back(reader.abort_handle());
    }
}

async fn answer(mut tcp: TcpStream, find: impl Fn(&str) -> Option<Document>) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > LONGEST_HEAD || tcp.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let line = String::from_utf8_lossy(&head);
    let mut words = line.split_whitespace();
    let found = match (words.next(), words.next()) {
        (Some("GET"), Some(path)) => find(path.split('?').next().unwrap_or_default()),
        _ => None,
    };
    let (status, (kind, text)) = match found {
        Some(document) => ("200 OK", document),
        None => ("404 Not Found", ("text/plain", "there are /metrics and /status\n".to_owned())),
    };
    let length = text.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    tcp.write_all(head.as_bytes()).await?;
    tcp.write_all(text.as_bytes()).await?;
    tcp.shutdown().await
}

/// Fetches a document of such a server.
///
/// # Errors
/// The server cannot be reached, or sends no document.
pub(super) async fn get(server: SocketAddr, path: &str) -> io::Result<String> {
    let mut tcp = TcpStream::connect(server).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
    tcp.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    tcp.take(LONGEST_ANSWER).read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => Ok(body.to_owned()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "no tunnel answers there")),
    }
}

const MOST_READERS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST_HEAD: usize = 8 * 1024;
const LONGEST_ANSWER: u64 = 64 << 20;
