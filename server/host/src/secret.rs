//! Files with secrets, wherever a service manager puts them.

use std::path::Path;

use twinstep_udp::{TicketKey, TicketKeyError};

/// The variable by which systemd names the folder of a service's credentials. Whoever mounts secrets into a container sets
/// it too.
pub const CREDENTIALS_VARIABLE: &str = "CREDENTIALS_DIRECTORY";

/// Reads a key file, or a token file, which is one too. One that a service manager put into its folder of credentials is
/// kept from others by that folder.
///
/// # Errors
/// The file cannot be read, others may read it, or it holds no key.
pub fn load_secret(path: &Path) -> Result<TicketKey, TicketKeyError> {
    let folder = std::env::var_os(CREDENTIALS_VARIABLE);
    match folder.is_some_and(|folder| path.parent() == Some(Path::new(&folder))) {
        true => TicketKey::load_credential(path),
        false => TicketKey::load(path),
    }
}
