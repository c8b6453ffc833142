//! The error of the crate's own serializers. They never fail themselves, but an author's `Serialize` can.

use alloc::string::{String, ToString};
use core::fmt::Display;

use serde::ser;

/// The reason that an author's `Serialize` gave for its failure.
#[derive(Debug, Default, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SerializeError(pub(crate) String);

impl ser::Error for SerializeError {
    fn custom<T: Display>(reason: T) -> Self {
        SerializeError(reason.to_string())
    }
}
