//! [`AdminClient`]: a client of an admin port. One request per connection, in minimal HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use super::admin_address::AdminAddress;
use super::admin_error::AdminError;
use super::admin_port::AdminToken;

/// The time-out for a response: a released match first lets joining clients finish, and ends its journal.
const ANSWER_PATIENCE: Duration = Duration::from_secs(15);
/// The size limit for a response, which fits the largest list of bans.
const ANSWER_BYTES_MAX: u64 = 32 << 20;

/// A client for the admin port of a server on this machine. Each call blocks, normally for less than 15 s.
#[derive(Clone)]
pub struct AdminClient {
    address: AdminAddress,
    token: Option<AdminToken>,
}

/// A response from an admin port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminAnswer {
    /// The HTTP status: 200 for success.
    pub status: u16,
    /// JSON for success, else a message.
    pub body: String,
}

impl AdminClient {
    /// Creates a client without a token, for requests that need none and for all requests to a Unix socket.
    #[must_use]
    pub fn new(address: impl Into<AdminAddress>) -> AdminClient {
        AdminClient {
            address: address.into(),
            token: None,
        }
    }

    /// Adds the token in this file, which is the server's token file.
    ///
    /// # Errors
    /// If the file cannot be read, other users may read it, or it does not hold a token.
    pub fn with_token(mut self, file: &Path) -> Result<AdminClient, AdminError> {
        self.token = Some(AdminToken::load(file)?);
        Ok(self)
    }

    /// Sends a GET request, such as `/matches`.
    ///
    /// # Errors
    /// [`AdminError::Ask`] if no admin port responds there, or its response is malformed.
    pub fn get(&self, path: &str) -> Result<AdminAnswer, AdminError> {
        self.ask("GET", path, "")
    }

    /// Sends a POST request, such as `/kick`; the body is a JSON object, or empty.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get).
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
        // A single write, because a port that refuses the header could close the connection before the rest is written.
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
