//! QUIC by quinn: one stream each way, of messages whose length both sides know, between two hosts.
//!
//! A runtime of one thread in each process, which the calls drive. The receiver makes a certificate
//! for the session, which the sender trusts; QUIC is always encrypted.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use hamlyn_compare_session::{Order, Peer, RECEIVER, Session, Stamp};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::{ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig};
use quinn::{IdleTimeout, TransportConfig, VarInt};
use tokio::runtime::{Builder, Runtime};

const PORT: u16 = 7510;
const NAME: &str = "receiver";
/// What may be unacknowledged, or unread: more than a network of this kind holds.
const WINDOW_BYTES: u32 = 8 << 20;
/// Nobody is thought dead while another peer is measured.
const IDLE_TIMEOUT_MS: u32 = 30 * 60 * 1000;
/// What the receiver's stream opens with, as nobody learns of a stream without bytes.
const HELLO: &[u8] = &[1];
/// Long enough for what is still to be acknowledged.
const SETTLING: Duration = Duration::from_millis(5);

struct Stream {
    runtime: Runtime,
    send: SendStream,
    receive: RecvStream,
    buffer: Vec<u8>,
    is_latency: bool,
    is_receiver: bool,
    /// Kept as long as the stream.
    _connection: Connection,
    _endpoint: Endpoint,
}

fn main() -> Result<()> {
    Session::open()?.run(Stream::open)
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_TIMEOUT_MS))))
        .stream_receive_window(VarInt::from_u32(WINDOW_BYTES))
        .receive_window(VarInt::from_u32(WINDOW_BYTES))
        .send_window(WINDOW_BYTES.into());
    Arc::new(transport)
}

impl Stream {
    fn open(session: &Session) -> Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            // Sockets are looked at each time round.
            .event_interval(1)
            .build()?;
        let (endpoint, connection, send, receive) = runtime.block_on(async {
            let opened = if session.role == RECEIVER {
                accept(session).await
            } else {
                connect(session).await
            };
            tokio::time::sleep(SETTLING).await;
            opened
        })?;
        Ok(Self {
            runtime,
            send,
            receive,
            buffer: Vec::new(),
            is_latency: false,
            is_receiver: session.role == RECEIVER,
            _connection: connection,
            _endpoint: endpoint,
        })
    }
}

fn address(variable: &str, port: u16) -> Result<SocketAddr> {
    let ip = std::env::var(variable).with_context(|| format!("no {variable}"))?;
    Ok(SocketAddr::new(ip.parse()?, port))
}

async fn accept(session: &Session) -> Result<(Endpoint, Connection, SendStream, RecvStream)> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let certificate = CertificateDer::from(made.cert);
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    config.transport_config(transport());
    let endpoint = Endpoint::server(config, address("COMPARE_OWN", PORT)?)?;
    session.publish("certificate", &certificate)?;
    let incoming = endpoint.accept().await.context("nobody connects")?;
    let connection = incoming.await?;
    let (send, mut receive) = connection.accept_bi().await?;
    let mut hello = [0; HELLO.len()];
    receive.read_exact(&mut hello).await?;
    Ok((endpoint, connection, send, receive))
}

async fn connect(session: &Session) -> Result<(Endpoint, Connection, SendStream, RecvStream)> {
    let mut trusted = RootCertStore::empty();
    trusted.add(CertificateDer::from(session.awaited("certificate")?))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(trusted))?;
    config.transport_config(transport());
    let mut endpoint = Endpoint::client(address("COMPARE_OWN", 0)?)?;
    endpoint.set_default_client_config(config);
    let to = address("COMPARE_RECEIVER", PORT)?;
    let connection = endpoint.connect(to, NAME)?.await?;
    let (mut send, receive) = connection.open_bi().await?;
    send.write_all(HELLO).await?;
    Ok((endpoint, connection, send, receive))
}

/// Waits without sleeping, as a program that wants the lowest latency does.
async fn polled<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let state = future.as_mut().poll(context);
        if state.is_pending() {
            context.waker().wake_by_ref();
        }
        state
    })
    .await
}

impl Peer for Stream {
    fn prepare(&mut self, order: &Order) -> Result<Option<String>> {
        self.buffer.resize(order.size_bytes, 0);
        self.is_latency = order.is_latency;
        Ok(None)
    }

    fn send(&mut self, message: &[u8]) -> Result<()> {
        Ok(self
            .runtime
            .block_on(polled(self.send.write_all(message)))?)
    }

    fn receive(&mut self) -> Result<Stamp> {
        let read = self.receive.read_exact(&mut self.buffer);
        self.runtime.block_on(polled(read))?;
        Stamp::read(&self.buffer).context("a message without a stamp")
    }

    /// What was written goes out only while somebody drives the runtime.
    fn settle(&mut self) -> Result<()> {
        let mut word = [0; HELLO.len()];
        match (self.is_latency, self.is_receiver) {
            (true, _) => {}
            (false, true) => self.send(HELLO)?,
            (false, false) => self.runtime.block_on(self.receive.read_exact(&mut word))?,
        }
        self.runtime
            .block_on(async { tokio::time::sleep(SETTLING).await });
        Ok(())
    }
}
