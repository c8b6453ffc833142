//! Files with secrets, including those that a service manager provides.

use std::path::Path;

use twinstep_udp::{TicketKey, TicketKeyError};

/// The environment variable with the folder of a service's credentials. systemd sets it; an operator that mounts secrets
/// into a container sets it too.
pub const CREDENTIALS_VARIABLE: &str = "CREDENTIALS_DIRECTORY";

/// Reads a key file or a token file. In the folder of credentials, the file may belong to another user and be readable
/// by its group, because that folder protects it.
///
/// # Errors
/// If the file cannot be read, other users may read it, or it does not hold a key.
pub fn load_secret(path: &Path) -> Result<TicketKey, TicketKeyError> {
    let folder = std::env::var_os(CREDENTIALS_VARIABLE);
    match folder.is_some_and(|folder| path.parent() == Some(Path::new(&folder))) {
        true => TicketKey::load_credential(path),
        false => TicketKey::load(path),
    }
}
