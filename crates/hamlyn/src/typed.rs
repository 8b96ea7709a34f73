//! End points that carry values of one type beside those that carry bytes. The type is named when
//! an end point is bound and when it is connected to, so two programs that mean different types do
//! not connect. A value lies where it landed: nothing is copied or decoded, which is why it must be
//! a plain record ([`zerocopy`]), and little- or big-endian fields are its author's choice across
//! hosts.
//!
//! Refused: a message of another length than the type's.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use hamlyn_engine::terminus::SendHandle;
use hamlyn_host::Host;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::{ConnectError, OpenError, ReceiveError, SendError};

use crate::item::{EndPoint, ItemHeader, Protocol, TYPE_NAME_BYTES_MAX, TypeName};
use crate::manager::Manager;
use crate::service::{
    Answered, Call, CallError, Client, Reply, ReplyError, Service, ServiceOptions,
};
use crate::stream::StreamOptions;
use crate::wait::Wait;
use crate::{datagram, stream};

/// A type that travels as it lies in memory.
///
/// ```
/// use hamlyn::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
///
/// #[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
/// #[zerocopy(crate = "hamlyn::zerocopy")]
/// #[repr(C)]
/// struct Point {
///     x: f64,
///     y: f64,
/// }
///
/// impl hamlyn::typed::Typed for Point {
///     const NAME: &'static str = "Point";
/// }
/// ```
pub trait Typed: FromBytes + IntoBytes + Immutable + KnownLayout + 'static {
    /// What both programs call it: 1 to 64 bytes.
    const NAME: &'static str;
}

macro_rules! typed {
    ($($primitive:ident)+) => { $(
        impl Typed for $primitive {
            const NAME: &'static str = stringify!($primitive);
        }
    )+ };
}

typed!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64);

/// Bytes at which all that lands begins, at least.
const ALIGNMENT_BYTES: usize = 8;

pub(crate) fn type_name<T: Typed>() -> TypeName {
    const {
        assert!(
            align_of::<T>() <= ALIGNMENT_BYTES,
            "values that travel begin at multiples of eight bytes"
        );
        assert!(size_of::<T>() > 0, "a value has a byte at least");
        assert!(
            !T::NAME.is_empty() && T::NAME.len() <= TYPE_NAME_BYTES_MAX,
            "the name of a type has 1 to 64 bytes"
        );
    }
    TypeName {
        name: T::NAME,
        length_bytes: size_of::<T>() as u32,
    }
}

/// An end point of messages that are each a `T`.
pub struct Of<T, E> {
    end: E,
    carries: PhantomData<fn() -> T>,
}

impl<T, E> Of<T, E> {
    pub(crate) fn new(end: E) -> Self {
        Self {
            end,
            carries: PhantomData,
        }
    }

    /// The end point of bytes beneath it.
    pub fn bytes(&self) -> &E {
        &self.end
    }

    /// The end point of bytes beneath it.
    pub fn bytes_mut(&mut self) -> &mut E {
        &mut self.end
    }
}

impl<T, E: fmt::Debug> fmt::Debug for Of<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Of").field(&self.end).finish()
    }
}

/// A value where it landed, in the guard of the message that it is.
pub struct Value<T, G> {
    message: G,
    carries: PhantomData<fn() -> T>,
}

impl<T: Typed, G: Deref<Target = [u8]>> Value<T, G> {
    /// Nothing if the message has another length.
    fn new(message: G) -> Option<Self> {
        T::ref_from_bytes(&message).ok()?;
        Some(Self {
            message,
            carries: PhantomData,
        })
    }

    /// The message that it is.
    pub fn message(&self) -> &G {
        &self.message
    }

    /// The message that it is.
    pub fn into_message(self) -> G {
        self.message
    }
}

impl<T: Typed, G: Deref<Target = [u8]>> Deref for Value<T, G> {
    type Target = T;

    fn deref(&self) -> &T {
        T::ref_from_bytes(&self.message)
            .unwrap_or_else(|_| unreachable!("its length was compared when it came"))
    }
}

impl<T: Typed + fmt::Debug, G: Deref<Target = [u8]>> fmt::Debug for Value<T, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

fn value<T: Typed, G: Deref<Target = [u8]>>(
    message: Option<G>,
    protocol: &'static str,
) -> Result<Option<Value<T, G>>, ReceiveError> {
    message
        .map(|message| of_type(message, protocol))
        .transpose()
}

fn of_type<T: Typed, G: Deref<Target = [u8]>>(
    message: G,
    protocol: &'static str,
) -> Result<Value<T, G>, ReceiveError> {
    Value::new(message).ok_or(ReceiveError::Malformed {
        protocol,
        what: "its length is not that of its type",
    })
}

impl<T: Typed, H: Host> Of<T, datagram::Receiver<H>> {
    /// As [`datagram::Receiver::recv`].
    pub fn recv(
        &mut self,
        wait: Wait,
    ) -> Result<Option<Value<T, datagram::Datagram<'_, H>>>, ReceiveError> {
        value(self.end.recv(wait)?, "datagram")
    }

    /// As [`datagram::Receiver::recv_async`].
    pub async fn recv_async(
        &mut self,
    ) -> Result<Value<T, datagram::Datagram<'_, H>>, ReceiveError> {
        of_type(self.end.recv_async().await?, "datagram")
    }
}

impl<T: Typed, H: Host> Of<T, datagram::Sender<H>> {
    /// As [`datagram::Sender::send`].
    pub fn send(&self, value: &T, wait: Wait) -> Result<SendHandle, SendError> {
        self.end.send(value.as_bytes(), wait)
    }

    /// As [`datagram::Sender::send_async`].
    pub async fn send_async(&mut self, value: &T) -> Result<SendHandle, SendError> {
        self.end.send_async(value.as_bytes()).await
    }
}

impl<T: Typed, H: Host> Of<T, stream::Receiver<H>> {
    /// As [`stream::Receiver::recv`].
    pub fn recv(
        &mut self,
        wait: Wait,
    ) -> Result<Option<Value<T, stream::Record<'_, H>>>, ReceiveError> {
        value(self.end.recv(wait)?, "stream")
    }

    /// As [`stream::Receiver::recv_async`].
    pub async fn recv_async(&mut self) -> Result<Value<T, stream::Record<'_, H>>, ReceiveError> {
        of_type(self.end.recv_async().await?, "stream")
    }

    /// Copies of all values, until the time between two of them is over or the stream has ended; an
    /// error is the last item.
    pub fn values(&mut self, wait: Wait) -> impl Iterator<Item = Result<T, ReceiveError>>
    where
        T: Copy,
    {
        let mut is_over = false;
        std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            match self.recv(wait) {
                Ok(value) => value.map(|value| Ok(*value)),
                Err(error) => {
                    // The last thing, whatever it is.
                    is_over = true;
                    (error != ReceiveError::Closed).then_some(Err(error))
                }
            }
        })
    }
}

impl<T: Typed, H: Host> Of<T, stream::Sender<H>> {
    /// As [`stream::Sender::send`].
    pub fn send(&mut self, value: &T, wait: Wait) -> Result<(), SendError> {
        self.end.send(value.as_bytes(), wait)
    }

    /// As [`stream::Sender::send_async`].
    pub async fn send_async(&mut self, value: &T) -> Result<(), SendError> {
        self.end.send_async(value.as_bytes()).await
    }

    /// As [`stream::Sender::flush`].
    pub fn flush(&mut self, wait: Wait) -> Result<(), SendError> {
        self.end.flush(wait)
    }

    /// As [`stream::Sender::close`].
    pub fn close(&mut self, wait: Wait) -> Result<(), SendError> {
        self.end.close(wait)
    }
}

/// A call whose request is a `Q` and whose reply is an `R`.
pub struct TypedCall<'a, Q, R, H: Host> {
    request: Value<Q, Call<'a, H>>,
    replies: PhantomData<fn() -> R>,
}

impl<'a, Q: Typed, R: Typed, H: Host> TypedCall<'a, Q, R, H> {
    fn new(call: Call<'a, H>) -> Self {
        let request = Value::new(call);
        Self {
            request: request.unwrap_or_else(|| unreachable!("its length was compared")),
            replies: PhantomData,
        }
    }

    /// Who asks, as [`Call::client`].
    pub fn client(&self) -> Option<crate::PeerIdentity> {
        self.request.message().client()
    }

    /// Answers, as [`Call::reply`].
    pub fn reply(self, reply: &R) -> Result<Answered, ReplyError> {
        self.request.into_message().reply(reply.as_bytes())
    }
}

impl<Q: Typed, R: Typed, H: Host> Deref for TypedCall<'_, Q, R, H> {
    type Target = Q;

    fn deref(&self) -> &Q {
        &self.request
    }
}

impl<Q: Typed, R: Typed, H: Host> Of<(Q, R), Service<H>> {
    /// As [`Service::next`]. A request of another length than the type's is dropped, and its client
    /// told so.
    pub fn next(&mut self, wait: Wait) -> Result<Option<TypedCall<'_, Q, R, H>>, ReceiveError> {
        let call = self.end.next_of(size_of::<Q>(), wait)?;
        Ok(call.map(TypedCall::new))
    }

    /// As [`Service::next_async`], and [`Of::next`].
    pub async fn next_async(&mut self) -> Result<TypedCall<'_, Q, R, H>, ReceiveError> {
        let call = self.end.next_of_async(size_of::<Q>()).await?;
        Ok(TypedCall::new(call))
    }
}

impl<Q: Typed, R: Typed, H: Host> Of<(Q, R), Client<H>> {
    /// As [`Client::call`].
    pub fn call(&mut self, request: &Q, wait: Wait) -> Result<Value<R, Reply<'_, H>>, CallError> {
        let to = self.end.to().to_owned();
        typed_reply(self.end.call(request.as_bytes(), wait)?, to)
    }

    /// As [`Client::call_async`].
    pub async fn call_async(&mut self, request: &Q) -> Result<Value<R, Reply<'_, H>>, CallError> {
        let to = self.end.to().to_owned();
        typed_reply(self.end.call_async(request.as_bytes()).await?, to)
    }
}

fn typed_reply<R: Typed, G: Deref<Target = [u8]>>(
    reply: G,
    to: String,
) -> Result<Value<R, G>, CallError> {
    Value::new(reply).ok_or(CallError::Malformed {
        to,
        what: "the length of a reply is not that of its type",
    })
}

/// End points that carry values of one type; otherwise as those that carry bytes.
impl<H: Host> Manager<H> {
    /// As [`Manager::bind_datagram`].
    pub fn bind_datagram_of<T: Typed>(
        &self,
        item: &str,
    ) -> Result<Of<T, datagram::Receiver<H>>, OpenError> {
        let header = ItemHeader::new(Protocol::Datagram, type_name::<T>());
        let end = datagram::Receiver::bind(self, item, size_of::<T>() as u32, header)?;
        Ok(Of::new(end))
    }

    /// As [`Manager::connect_datagram`].
    pub fn connect_datagram_of<'a, T: Typed>(
        &self,
        to: impl Into<EndPoint<'a>>,
        wait: Wait,
    ) -> Result<Of<T, datagram::Sender<H>>, ConnectError> {
        let header = ItemHeader::new(Protocol::Datagram, type_name::<T>());
        Ok(Of::new(datagram::Sender::connect(
            self,
            to.into(),
            header,
            wait,
        )?))
    }

    /// As [`Manager::bind_stream`].
    pub fn bind_stream_of<T: Typed>(
        &self,
        item: &str,
        options: StreamOptions,
    ) -> Result<Of<T, stream::Receiver<H>>, OpenError> {
        let header = ItemHeader::new(Protocol::Stream, type_name::<T>());
        let end = stream::Receiver::bind(self, item, options, header)?;
        Ok(Of::new(end))
    }

    /// As [`Manager::connect_stream`].
    pub fn connect_stream_of<'a, T: Typed>(
        &self,
        to: impl Into<EndPoint<'a>>,
        wait: Wait,
    ) -> Result<Of<T, stream::Sender<H>>, ConnectError> {
        let header = ItemHeader::new(Protocol::Stream, type_name::<T>());
        Ok(Of::new(stream::Sender::connect(
            self,
            to.into(),
            header,
            wait,
        )?))
    }

    /// As [`Manager::bind_service`]; requests and replies are as long as their types.
    pub fn bind_service_of<Q: Typed, R: Typed>(
        &self,
        item: &str,
        options: ServiceOptions,
    ) -> Result<Of<(Q, R), Service<H>>, OpenError> {
        let header = ItemHeader::service(type_name::<Q>(), type_name::<R>());
        let options = ServiceOptions {
            request_bytes: size_of::<Q>() as u32,
            reply_bytes: size_of::<R>() as u32,
            ..options
        };
        Ok(Of::new(Service::bind(self, item, options, header)?))
    }

    /// As [`Manager::connect_service`].
    pub fn connect_service_of<'a, Q: Typed, R: Typed>(
        &self,
        to: impl Into<EndPoint<'a>>,
        wait: Wait,
    ) -> Result<Of<(Q, R), Client<H>>, ConnectError> {
        let header = ItemHeader::service(type_name::<Q>(), type_name::<R>());
        Ok(Of::new(Client::connect(self, to.into(), header, wait)?))
    }
}
