//! [`Admin`]: the state that the admin port's requests share.

use std::path::PathBuf;

use twinstep_host::HostControl;

use crate::bans::Bans;
use crate::metrics::Metrics;

#[derive(Clone)]
pub(crate) struct Admin {
    pub(crate) control: HostControl,
    pub(crate) metrics: Metrics,
    pub(crate) bans: Bans,
    pub(crate) saves: Option<PathBuf>,
}
