//! The TLS that browsers are shown, and the certificate of an authority.

use std::io;
use std::path::Path;
use std::sync::Arc;

use wtransport::Identity;
use wtransport::tls::rustls::pki_types::pem::PemObject;
use wtransport::tls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use wtransport::tls::{Certificate, CertificateChain, PrivateKey, rustls};

/// The TLS of a certificate. Fails if its key does not belong to it.
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

/// Reads a certificate of an authority and its key, in PEM.
pub(super) fn of_files(chain: &Path, key: &Path) -> io::Result<Identity> {
    let refused = |path: &Path, why: String| {
        let words = format!("cannot use {}: {why}", path.display());
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
