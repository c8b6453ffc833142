//! [`AdminClient`]: asks an admin port. One request on one connection, as small as HTTP can be.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use super::admin_address::AdminAddress;
use super::admin_error::AdminError;
use super::admin_port::AdminToken;

/// How long an answer is waited for: a match that is released lets in who is on the way, and ends its journal, meanwhile.
const ANSWER_PATIENCE: Duration = Duration::from_secs(15);
/// An answer is at most so large: as many bans as there may be.
const ANSWER_BYTES_MAX: u64 = 32 << 20;

/// Asks the admin port of a server on this machine. Each call blocks for up to 30 s.
#[derive(Clone)]
pub struct AdminClient {
    address: AdminAddress,
    token: Option<AdminToken>,
}

/// What an admin port answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminAnswer {
    /// The status of HTTP: 200 if it was done.
    pub status: u16,
    /// JSON, or words if it was not done.
    pub body: String,
}

impl AdminClient {
    /// For what needs no token: numbers, and everything at a Unix socket.
    #[must_use]
    pub fn new(address: impl Into<AdminAddress>) -> AdminClient {
        AdminClient {
            address: address.into(),
            token: None,
        }
    }

    /// With the token of this file, which the server was started with.
    ///
    /// # Errors
    /// The file is not there, others may read it, or it holds no token.
    pub fn with_token(mut self, file: &Path) -> Result<AdminClient, AdminError> {
        self.token = Some(AdminToken::load(file)?);
        Ok(self)
    }

    /// Asks for something, such as `/matches`.
    ///
    /// # Errors
    /// [`AdminError::Ask`]: nobody answers there, or not as an admin port does.
    pub fn get(&self, path: &str) -> Result<AdminAnswer, AdminError> {
        self.ask("GET", path, "")
    }

    /// Has something done, such as `/kick`; the body is a JSON object, or empty.
    ///
    /// # Errors
    /// [`AdminError::Ask`], as [`get`](Self::get).
    pub fn post(&self, path: &str, body: &str) -> Result<AdminAnswer, AdminError> {
        self.ask("POST", path, body)
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<AdminAnswer, AdminError> {
        let asked = self.exchange(method, path, body);
        asked.map_err(|source| AdminError::Ask {
            address: self.address.clone(),
            source,
        })
    }

    fn exchange(&self, method: &str, path: &str, body: &str) -> std::io::Result<AdminAnswer> {
        let token = self.token.as_ref();
        let token = token.map(|token| format!("Authorization: {}\r\n", token.header()));
        // In one piece, or a port that refuses by the head alone may have closed before the rest is written.
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.host(),
            token.unwrap_or_default(),
            body.len()
        );
        let answer = match &self.address {
            AdminAddress::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, ANSWER_PATIENCE)?;
                stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
                stream.set_write_timeout(Some(ANSWER_PATIENCE))?;
                converse(stream, &request)?
            }
            #[cfg(unix)]
            AdminAddress::Unix(path) => {
                let stream = std::os::unix::net::UnixStream::connect(path)?;
                stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
                stream.set_write_timeout(Some(ANSWER_PATIENCE))?;
                converse(stream, &request)?
            }
            #[cfg(not(unix))]
            AdminAddress::Unix(_) => return Err(std::io::ErrorKind::Unsupported.into()),
        };
        let parsed = answer.split_once("\r\n\r\n").and_then(|(head, body)| {
            let status = head.split(' ').nth(1)?.parse().ok()?;
            let body = body.to_owned();
            Some(AdminAnswer { status, body })
        });
        parsed.ok_or_else(|| std::io::ErrorKind::InvalidData.into())
    }

    fn host(&self) -> String {
        match &self.address {
            AdminAddress::Tcp(address) => address.to_string(),
            AdminAddress::Unix(_) => "localhost".to_owned(),
        }
    }
}

fn converse(mut stream: impl Read + Write, request: &str) -> std::io::Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    Ok(answer)
}
