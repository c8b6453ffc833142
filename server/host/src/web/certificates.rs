//! [`Certificates`]: the certificates that a host creates itself, which browsers accept by their hash. Also sets up
//! TLS, for these and for certificates that an authority issued.
//!
//! ```text
//!  day  0        6          12        18
//!       ├─ first ─┼──────────┤─ 1 day
//!                 ├─ second ─┼─────────┤          tickets name both; the first one is shown until its last day
//! ```
//!
//! Browsers accept a hash only for a certificate of P-256 that is valid for at most two weeks.
//!
//! Invariant: each ticket has a hash whose certificate is used for at least five days after the ticket was issued.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use twinstep_udp::{WEB_HASHES_MAX, open_regular, replace_file};
use wtransport::Identity;
use wtransport::tls::rustls::pki_types::pem::PemObject;
use wtransport::tls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use wtransport::tls::self_signed::time::OffsetDateTime;
use wtransport::tls::{Certificate, CertificateChain, PrivateKey, rustls};

const DAY_S: u64 = 86_400;
/// A new certificate is backdated by this much, for browsers whose clocks are slow.
const SLACK_S: u64 = 3_600;
const LIFE_S: u64 = 13 * DAY_S;
/// The next certificate is created when the current one is valid for less than this.
const NEXT_WITHIN_S: u64 = 7 * DAY_S;
/// A certificate is no longer shown when it is valid for less than this.
const SHOWN_UNTIL_S: u64 = DAY_S;
const FILE_BYTES_MAX: u64 = 16 * 1_024;
const HEAD: &str = "twinstep-web-certificates-1";

pub(super) struct Certificates {
    /// The current certificate, and the next one if it exists.
    made: Vec<Made>,
    /// The certificates changed since the last write.
    is_unsaved: bool,
}

struct Made {
    not_after_unix_s: u64,
    identity: Identity,
}

impl Certificates {
    /// Reads the certificates from a file, if there is one, and creates missing ones.
    ///
    /// # Errors
    /// If the file cannot be read or written, or holds something else.
    pub(super) fn open(kept: Option<&Path>, now_unix: Duration) -> io::Result<Certificates> {
        let mut certificates = Certificates::stored(kept)?;
        certificates.renew(kept, now_unix).1?;
        Ok(certificates)
    }

    // The certificates in the file, if there is one.
    pub(super) fn stored(kept: Option<&Path>) -> io::Result<Certificates> {
        let mut made = Vec::new();
        if let Some(path) = kept
            && path.exists()
        {
            let mut text = String::new();
            let file = open_regular(path)?;
            file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
            made = read(&text).ok_or_else(|| {
                let words = format!(
                    "{} is not a file of certificates that this server made; move it away, and the server makes new ones",
                    path.display()
                );
                io::Error::new(io::ErrorKind::InvalidData, words)
            })?;
        }
        let is_unsaved = false;
        Ok(Certificates { made, is_unsaved })
    }

    /// Drops certificates that are no longer shown, and creates the next one if it is time. Returns `true` if anything
    /// changed, and the result of writing the file. After an error, the next call writes the file again.
    pub(super) fn renew(
        &mut self,
        kept: Option<&Path>,
        now_unix: Duration,
    ) -> (bool, io::Result<()>) {
        let now_s = now_unix.as_secs();
        let left = |one: &Made| one.not_after_unix_s.saturating_sub(now_s);
        let before = self.made.len();
        // A clock that was set back leaves certificates that are not valid yet.
        self.made
            .retain(|one| (SHOWN_UNTIL_S..=LIFE_S).contains(&left(one)));
        let mut is_changed = self.made.len() != before;
        if self.made.iter().all(|one| left(one) < NEXT_WITHIN_S) {
            self.made.push(Made::now(now_s));
            is_changed = true;
        }
        debug_assert!((1..=WEB_HASHES_MAX).contains(&self.made.len()));
        self.is_unsaved |= is_changed;
        let saved = match kept.filter(|_| self.is_unsaved) {
            Some(path) => replace_file(path, write(&self.made)),
            None => Ok(()),
        };
        self.is_unsaved &= saved.is_err();
        (is_changed, saved)
    }

    pub(super) fn current(&self) -> Identity {
        self.made[0].identity.clone_identity()
    }

    /// The hashes, the current certificate's first.
    pub(super) fn hashes(&self) -> Vec<[u8; 32]> {
        let hash = |one: &Made| *one.leaf().hash().as_ref();
        self.made.iter().map(hash).collect()
    }
}

impl Made {
    fn now(now_s: u64) -> Made {
        let at = |unix_s: u64| {
            let unix_s = i64::try_from(unix_s).unwrap_or_default();
            OffsetDateTime::from_unix_timestamp(unix_s).unwrap_or(OffsetDateTime::UNIX_EPOCH)
        };
        let not_after_unix_s = now_s + LIFE_S;
        let identity = Identity::self_signed_builder()
            .subject_alt_names(["localhost", "127.0.0.1", "::1"])
            .not_before(at(now_s.saturating_sub(SLACK_S)))
            .not_after(at(not_after_unix_s))
            .build()
            .expect("these names are valid");
        Made {
            not_after_unix_s,
            identity,
        }
    }

    fn leaf(&self) -> &Certificate {
        &self.identity.certificate_chain().as_slice()[0]
    }
}

/// Writes a line per certificate: the end of its validity, the certificate, and its key.
fn write(made: &[Made]) -> String {
    let mut text = format!("{HEAD}\n");
    for one in made {
        let (der, key) = (one.leaf().der(), one.identity.private_key().secret_der());
        let line = format!("{} {} {}\n", one.not_after_unix_s, hex(der), hex(key));
        text.push_str(&line);
    }
    text
}

fn read(text: &str) -> Option<Vec<Made>> {
    let mut lines = text.lines();
    if lines.next() != Some(HEAD) {
        return None;
    }
    let made = lines.map(|line| {
        let mut words = line.split(' ');
        let not_after_unix_s = words.next()?.parse().ok()?;
        let certificate = Certificate::from_der(from_hex(words.next()?)?).ok()?;
        let key = PrivateKey::from_der_pkcs8(from_hex(words.next()?)?);
        let identity = Identity::new(CertificateChain::single(certificate), key);
        tls(&identity).ok()?;
        Some(Made {
            not_after_unix_s,
            identity,
        })
    });
    let made: Option<Vec<Made>> = made.take(WEB_HASHES_MAX).collect();
    made
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let pairs = pairs.map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect()
}

/// The TLS configuration for a certificate. Fails if the key does not belong to the certificate.
pub(super) fn tls(identity: &Identity) -> io::Result<rustls::ServerConfig> {
    let chain = identity.certificate_chain().as_slice().iter();
    let chain = chain.map(|one| one.der().to_vec().into()).collect();
    let key = identity.private_key().secret_der().to_vec();
    let key = PrivateKeyDer::try_from(key).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(io::Error::other)?;
    tls.alpn_protocols = vec![wtransport::tls::WEBTRANSPORT_ALPN.to_vec()];
    Ok(tls)
}

/// Reads a certificate issued by an authority, and its key, in PEM.
pub(super) fn of_files(chain: &Path, key: &Path) -> io::Result<Identity> {
    let refused = |path: &Path, why: String| {
        let flag = if path == chain { "tls-cert" } else { "tls-key" };
        let words = format!("cannot use {} (--{flag}): {why}", path.display());
        io::Error::new(io::ErrorKind::InvalidData, words)
    };
    let read = |path: &Path| std::fs::read(path).map_err(|error| refused(path, error.to_string()));
    let pem = read(chain)?;
    let certificates = CertificateDer::pem_slice_iter(&pem).map(|one| {
        let one = one.map_err(|error| refused(chain, error.to_string()))?;
        Certificate::from_der(one.to_vec()).map_err(|error| refused(chain, error.to_string()))
    });
    let certificates: Vec<Certificate> = certificates.collect::<io::Result<_>>()?;
    if certificates.is_empty() {
        return Err(refused(chain, "expected a certificate in PEM".to_owned()));
    }
    let secret = PrivateKeyDer::from_pem_slice(&read(key)?);
    let secret = secret.map_err(|error| refused(key, error.to_string()))?;
    let secret = PrivateKey::from_der_pkcs8(secret.secret_der().to_vec());
    let identity = Identity::new(CertificateChain::new(certificates), secret);
    tls(&identity).map_err(|error| refused(key, error.to_string()))?;
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_800_000_000);
    const DAY: Duration = Duration::from_secs(DAY_S);

    /// Checks the certificates once an hour, as a host does. A ticket's hashes must be valid for five days.
    #[test]
    fn tickets_name_the_next_certificate_days_before_it_is_shown() {
        let mut certificates = Certificates::open(None, NOW).unwrap();
        let shown = |all: &Certificates| all.hashes()[0];
        let (mut named, mut shown_in_all) = (Vec::new(), vec![shown(&certificates)]);
        for hour in 0..60 * 24 {
            let now = NOW + DAY / 24 * hour;
            certificates.renew(None, now).1.unwrap();
            let shown = shown(&certificates);
            named.push(certificates.hashes());
            if let Some(then) = (named.len() - 1).checked_sub(5 * 24) {
                assert!(named[then].contains(&shown), "hour {hour}");
            }
            if shown_in_all.last() != Some(&shown) {
                shown_in_all.push(shown);
            }
        }
        assert_eq!(
            shown_in_all.len(),
            9,
            "a new one after 12, 18, 24 … 54 days"
        );
    }

    #[test]
    fn a_restarted_host_shows_the_same_certificate_from_its_file() {
        let name = format!("twinstep-web-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let open = |now| Certificates::open(Some(&path), now);
        let first = open(NOW).unwrap().hashes();
        assert_eq!(open(NOW + DAY).unwrap().hashes(), first);
        let both = open(NOW + DAY * 8).unwrap().hashes();
        assert_eq!((both.len(), both[0]), (2, first[0]));
        assert_eq!(open(NOW + DAY * 9).unwrap().hashes(), both);
        // The host was offline for a year, or its clock was set back by a year.
        for now in [NOW + DAY * 365, NOW] {
            let fresh = open(now).unwrap().hashes();
            assert!(fresh.len() == 1 && !both.contains(&fresh[0]));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let whole = std::fs::read_to_string(&path).unwrap();
        for spoiled in ["", "certificates", &whole[..whole.len() / 2]] {
            std::fs::write(&path, spoiled).unwrap();
            let refused = open(NOW).map(drop).unwrap_err().to_string();
            assert!(refused.contains("move it away"), "{refused}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_certificate_that_could_not_be_saved_is_saved_at_the_next_renewal() {
        let name = format!("twinstep-web-unsaved-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("web");
        let mut certificates = Certificates::open(Some(&path), NOW).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        for hour in 0..3 {
            let now = NOW + DAY * 7 + DAY / 24 * hour;
            let (is_changed, saved) = certificates.renew(Some(&path), now);
            assert_eq!((is_changed, saved.is_err()), (hour == 0, true));
        }
        std::fs::create_dir(&folder).unwrap();
        let (is_changed, saved) = certificates.renew(Some(&path), NOW + DAY * 8);
        assert!(!is_changed && saved.is_ok());
        let stored = Certificates::stored(Some(&path)).unwrap();
        assert_eq!(stored.hashes(), certificates.hashes());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
