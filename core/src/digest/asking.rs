//! Who serialises a value? A list whose parts' digests are known asks that, by a struct of one field that skips another:
//!
//! ```text
//!   struct NAME                            the codec                a digest, a look for a NaN
//!     NAME: skipped                         writes no bytes          refuse that, and go on
//!     the list, or digests of its parts     the list's own bytes     the digests
//! ```

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// The name of the struct that asks, and of the field that it skips.
pub(crate) const NAME: &str = "twinstep::digest::Known";

/// Serialises `whole`; where that is digested, or looked through for a NaN, `digests` in its place.
pub(crate) fn serialize<S: Serializer>(
    serializer: S,
    whole: &impl Serialize,
    digests: &impl Serialize,
) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        return whole.serialize(serializer);
    }
    let mut list = serializer.serialize_struct(NAME, 1)?;
    match list.skip_field(NAME) {
        Ok(()) => list.serialize_field("whole", whole)?,
        Err(_) => list.serialize_field("digests", digests)?,
    }
    list.end()
}
