//! The error of the crate's own serializers: they refuse nothing themselves, but an author's `Serialize` may.

use alloc::string::{String, ToString};
use core::fmt::Display;

use serde::ser;

/// What an author's `Serialize` said when it gave up.
#[derive(Debug, Default, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SerializeError(pub(crate) String);

impl ser::Error for SerializeError {
    fn custom<T: Display>(reason: T) -> Self {
        SerializeError(reason.to_string())
    }
}
