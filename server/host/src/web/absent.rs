//! [`NoLines`]: the lines of a build without the feature `web`.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use twinstep_udp::ServerAddress;

use super::{Heard, OnWebChange, WebConfig, WebTraffic};

/// No value of this type exists.
pub(crate) enum NoLines {}

impl NoLines {
    pub(crate) async fn start(
        _: &WebConfig,
        _: &[ServerAddress],
        _: OnWebChange,
    ) -> io::Result<NoLines> {
        let words = "this program takes no browsers; build it with the feature `web`";
        Err(io::Error::new(io::ErrorKind::Unsupported, words))
    }

    pub(crate) fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<()> {
        match *self {}
    }

    pub(crate) fn rouse(&mut self, _: bool) {
        match *self {}
    }

    pub(crate) fn receive(&mut self, _: Duration, _: usize, _: impl FnMut(Heard<'_>)) -> usize {
        match *self {}
    }

    pub(crate) fn send(&mut self, _: SocketAddr, _: &[u8]) -> bool {
        match *self {}
    }

    pub(crate) fn advance(&mut self, _: Duration, _: impl Fn(SocketAddr) -> bool) {
        match *self {}
    }

    pub(crate) fn traffic(&self) -> WebTraffic {
        match *self {}
    }
}
