//! One exchange of Noise, or the clear one that takes its place: a first message, a second one, and
//! the keys.

use ring::hmac;
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::super::key_file::PublicKey;
use super::super::protection::Key;
use super::super::randomness::Source;
use super::message::{Codes, Mode, NUMBER_BYTES, POINT_BYTES, derive};
use super::{Credentials, HandshakeError, Identity, Keys, Unheard};

const SECRET: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
const KEYS: &str = "Noise_IK_25519_AESGCM_SHA256";

/// Credentials, ready for use.
#[derive(Clone)]
pub(super) struct Suite {
    credentials: Credentials,
    /// Of the secret; the secret itself may have another length.
    psk: Zeroizing<[u8; 32]>,
    /// Where its random bytes come from.
    pub(super) random: Source,
}

/// One side of an exchange.
pub(super) enum Exchange {
    Noise(Box<HandshakeState>),
    Clear {
        nonce: [u8; POINT_BYTES],
        /// The other's, on the side of the responder.
        asked: [u8; POINT_BYTES],
    },
}

fn refused(error: &snow::Error) -> HandshakeError {
    HandshakeError::Noise(error.to_string())
}

impl Suite {
    pub(super) fn new(credentials: Credentials, random: Source) -> Self {
        let psk = match &credentials {
            Credentials::Secret(secret) => {
                let derived = derive(secret.bytes(), "hamlyn 1 psk");
                Zeroizing::new(*derived.as_ref().first_chunk().unwrap_or(&[0; 32]))
            }
            Credentials::Keys { .. } | Credentials::Insecure => Zeroizing::new([0; 32]),
        };
        Self {
            credentials,
            psk,
            random,
        }
    }

    pub(super) fn mode(&self) -> Mode {
        match self.credentials {
            Credentials::Secret(_) => Mode::Secret,
            Credentials::Keys { .. } => Mode::Keys,
            Credentials::Insecure => Mode::Insecure,
        }
    }

    /// Codes of messages to us, if we are asked, or to this host.
    pub(super) fn codes(&self, responder: Option<&PublicKey>) -> Codes {
        match &self.credentials {
            Credentials::Secret(secret) => Codes::new(secret.bytes()),
            Credentials::Keys { own, .. } => Codes::new(&responder.unwrap_or(&own.public()).0),
            Credentials::Insecure => Codes::new(b"insecure"),
        }
    }

    /// Whose key is to be expected; nothing without keys.
    pub(super) fn expected(&self, host: Option<&str>) -> Result<Option<PublicKey>, HandshakeError> {
        let Credentials::Keys { hosts, .. } = &self.credentials else {
            return Ok(None);
        };
        let host = host.ok_or(HandshakeError::NoHost)?;
        let key = hosts.iter().find(|(name, _)| name == host);
        let unknown = || HandshakeError::UnknownHost(host.to_owned());
        key.map(|&(_, key)| Some(key)).ok_or_else(unknown)
    }

    /// The host with this key; any holder of the secret if there are no keys of hosts.
    fn identify(&self, key: Option<&[u8]>) -> Option<Identity> {
        match &self.credentials {
            Credentials::Secret(_) => Some(Identity::SecretHolder),
            Credentials::Insecure => Some(Identity::Anyone),
            Credentials::Keys { hosts, .. } => {
                let host = hosts.iter().find(|host| Some(host.1.0.as_slice()) == key)?;
                Some(Identity::Host(host.0.clone()))
            }
        }
    }

    /// The peer if that key was expected and proved.
    pub(super) fn identity_of(&self, key: Option<&PublicKey>) -> Identity {
        let known = self.identify(key.map(|key| key.0.as_slice()));
        known.unwrap_or(Identity::Anyone)
    }

    fn state(
        &self,
        prologue: &[u8],
        responder: Option<&PublicKey>,
        is_initiator: bool,
    ) -> Result<HandshakeState, snow::Error> {
        let builder = match &self.credentials {
            Credentials::Keys { own, .. } => {
                let builder = Builder::with_resolver(KEYS.parse()?, self.random.resolver())
                    .local_private_key(own.private())?;
                match responder {
                    Some(key) => builder.remote_public_key(&key.0)?,
                    None => builder,
                }
            }
            Credentials::Secret(_) | Credentials::Insecure => {
                Builder::with_resolver(SECRET.parse()?, self.random.resolver()).psk(0, &self.psk)?
            }
        };
        let builder = builder.prologue(prologue)?;
        if is_initiator {
            builder.build_initiator()
        } else {
            builder.build_responder()
        }
    }

    /// Begins an exchange, and writes its first message, which carries nothing.
    pub(super) fn ask(
        &self,
        prologue: &[u8],
        responder: Option<&PublicKey>,
        into: &mut [u8],
    ) -> Result<Exchange, HandshakeError> {
        if self.mode() == Mode::Insecure {
            let nonce = self.random.bytes()?;
            into.copy_from_slice(&nonce);
            let asked = [0; POINT_BYTES];
            return Ok(Exchange::Clear { nonce, asked });
        }
        let refused = |error| refused(&error);
        let mut state = self.state(prologue, responder, true).map_err(refused)?;
        state.write_message(&[], into).map_err(refused)?;
        Ok(Exchange::Noise(Box::new(state)))
    }

    /// Reads a first message: the exchange as the responder sees it, and the initiator.
    pub(super) fn read_initiation(
        &self,
        prologue: &[u8],
        message: &[u8],
    ) -> Result<(Exchange, Identity), Unheard> {
        if self.mode() == Mode::Insecure {
            let asked = message.try_into().map_err(|_| Unheard::Malformed)?;
            let nonce = self.random.bytes()?;
            return Ok((Exchange::Clear { nonce, asked }, Identity::Anyone));
        }
        let state = self.state(prologue, None, false);
        let mut state = state.map_err(|_| Unheard::Broken)?;
        // The library wants room for the tag, too.
        let read = state.read_message(message, &mut [0; 64]);
        if read.map_err(|_| Unheard::Broken)? != 0 {
            return Err(Unheard::Malformed);
        }
        let identity = self.identify(state.get_remote_static());
        let identity = identity.ok_or(Unheard::Stranger)?;
        Ok((Exchange::Noise(Box::new(state)), identity))
    }
}

/// The keys of a clear exchange: they cannot be guessed without either nonce.
fn clear_keys(ask: &[u8], answer: &[u8]) -> [Key; 2] {
    let mut nonces = [0; 2 * POINT_BYTES];
    nonces[..POINT_BYTES].copy_from_slice(ask);
    nonces[POINT_BYTES..].copy_from_slice(answer);
    ["hamlyn 1 there", "hamlyn 1 back"].map(|label| {
        let tag: hmac::Tag = derive(&nonces, label);
        Key::Clear(u32::from_le_bytes(
            *tag.as_ref().first_chunk().unwrap_or(&[0; 4]),
        ))
    })
}

fn split(state: &mut HandshakeState) -> [Key; 2] {
    let (there, back) = state.dangerously_get_raw_split();
    [there, back].map(|key| Key::Encrypted(Zeroizing::new(key)))
}

impl Exchange {
    /// The responder's part: writes the second message, which carries its number. The keys.
    pub(super) fn answer(
        self,
        number: &[u8; NUMBER_BYTES],
        into: &mut [u8],
    ) -> Result<Keys, HandshakeError> {
        let [receive, send] = match self {
            Self::Clear { nonce, asked } => {
                let (head, body) = into.split_at_mut(POINT_BYTES);
                head.copy_from_slice(&nonce);
                body.copy_from_slice(number);
                clear_keys(&asked, &nonce)
            }
            Self::Noise(mut state) => {
                let written = state.write_message(number, into);
                written.map_err(|error| refused(&error))?;
                split(&mut state)
            }
        };
        Ok(Keys { send, receive })
    }

    /// The initiator's part: reads the second message. The keys, and the responder's number.
    /// Nothing changes if it is not authentic.
    pub(super) fn finish(&mut self, message: &[u8]) -> Result<(Keys, [u8; NUMBER_BYTES]), Unheard> {
        let mut number = [0; NUMBER_BYTES];
        let [send, receive] = match self {
            Self::Clear { nonce, .. } => {
                let (answer, body) = message.split_at(POINT_BYTES);
                number.copy_from_slice(body);
                clear_keys(nonce, answer)
            }
            Self::Noise(state) => {
                let mut opened = [0; 64];
                let read = state.read_message(message, &mut opened);
                if read.map_err(|_| Unheard::Broken)? != NUMBER_BYTES {
                    return Err(Unheard::Malformed);
                }
                number.copy_from_slice(&opened[..NUMBER_BYTES]);
                split(state)
            }
        };
        Ok((Keys { send, receive }, number))
    }
}
