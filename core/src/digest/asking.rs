//! Lets a list serialise the digests of its parts to a hasher or a check for NaN, and its elements to any other
//! serializer. The list is a struct that first skips a field; only the hasher and the check return an error for that:
//!
//! ```text
//!   struct NAME                            the codec                a digest, a check for NaN
//!     NAME: skipped                         writes no bytes          returns an error, and continues
//!     the list, or digests of its parts     the list's own bytes     the digests
//! ```

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// The name of that struct and of its skipped field.
pub(crate) const NAME: &str = "twinstep::digest::Known";

/// Serialises `whole`; for a digest or a check for NaN, serialises `digests` instead.
pub(crate) fn serialize<S: Serializer>(
    serializer: S,
    whole: &impl Serialize,
    digests: &impl Serialize,
) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        return whole.serialize(serializer);
    }
    let mut list = serializer.serialize_struct(NAME, 1)?;
    // Only the hasher and the NaN check fail here, and they do so without side effects.
    match list.skip_field(NAME) {
        Ok(()) => list.serialize_field("whole", whole)?,
        Err(_) => list.serialize_field("digests", digests)?,
    }
    list.end()
}
