//! What is done at a point of an interface's work, as steps that each occupy one resource.

use hamlyn_engine::point::{Point, PortPoint, UdmPoint};
use serde::Deserialize;

use super::number::{Count, Time};
use crate::time::Span;

/// A direction of the bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    /// Into host memory.
    In,
    /// Out of it.
    Out,
}

/// The name of a [`Point`], without its numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(
    missing_docs,
    reason = "they are the engine's, which says what each is"
)]
pub enum PointName {
    RequestWritten,
    RequestRead,
    PacketCut,
    MetadataFetched,
    DataFetched,
    MessageOut,
    HeaderRead,
    SlotRead,
    KeyChecked,
    EntryRead,
    PermissionRead,
    Deposited,
    MetadataStored,
    AccumulatorRead,
    AccumulatorWritten,
    Notified,
    Signalled,
    ReadServed,
    PutServed,
    ChangeServed,
    Answered,
    Refused,
    AnswerMade,
    TimerSet,
    ReadBegun,
    PutBegun,
    ChangeBegun,
    Asked,
    RequestOut,
    HalfTaken,
    HandedOver,
    Taken,
    Looked,
    Woken,
    PortRead,
    PortKeyChecked,
    PortNotified,
    PortTaken,
    PortParked,
    PortResumed,
    Injected,
    Upcall,
    HandlerBegun,
    HandlerEnded,
    Disposed,
    AtomBegun,
    AtomEnded,
}

impl PointName {
    /// True if it is one of ports.
    pub(crate) fn is_of_ports(self) -> bool {
        matches!(
            self,
            Self::PortRead
                | Self::PortKeyChecked
                | Self::PortNotified
                | Self::PortTaken
                | Self::PortParked
                | Self::PortResumed
        )
    }

    /// True if it is one of user direct messaging.
    pub(crate) fn is_of_udm(self) -> bool {
        matches!(
            self,
            Self::Injected
                | Self::Upcall
                | Self::HandlerBegun
                | Self::HandlerEnded
                | Self::Disposed
                | Self::AtomBegun
                | Self::AtomEnded
        )
    }

    /// A point's name, and the bytes that it is about.
    pub(crate) fn of(point: Point) -> (Self, u64) {
        match point {
            Point::RequestWritten { data_bytes, .. } => (Self::RequestWritten, data_bytes.into()),
            Point::RequestRead => (Self::RequestRead, 0),
            Point::PacketCut => (Self::PacketCut, 0),
            Point::MetadataFetched(bytes) => (Self::MetadataFetched, bytes.into()),
            Point::DataFetched(bytes) => (Self::DataFetched, bytes.into()),
            Point::MessageOut => (Self::MessageOut, 0),
            Point::HeaderRead => (Self::HeaderRead, 0),
            Point::SlotRead => (Self::SlotRead, 0),
            Point::KeyChecked => (Self::KeyChecked, 0),
            Point::EntryRead => (Self::EntryRead, 0),
            Point::PermissionRead => (Self::PermissionRead, 0),
            Point::Deposited(bytes) => (Self::Deposited, bytes.into()),
            Point::MetadataStored(bytes) => (Self::MetadataStored, bytes.into()),
            Point::AccumulatorRead => (Self::AccumulatorRead, 0),
            Point::AccumulatorWritten => (Self::AccumulatorWritten, 0),
            Point::Notified => (Self::Notified, 0),
            Point::Signalled => (Self::Signalled, 0),
            Point::ReadServed(bytes) => (Self::ReadServed, bytes.into()),
            Point::PutServed(bytes) => (Self::PutServed, bytes.into()),
            Point::ChangeServed => (Self::ChangeServed, 0),
            Point::Answered => (Self::Answered, 0),
            Point::Refused => (Self::Refused, 0),
            Point::AnswerMade => (Self::AnswerMade, 0),
            Point::TimerSet => (Self::TimerSet, 0),
            Point::ReadBegun => (Self::ReadBegun, 0),
            Point::PutBegun => (Self::PutBegun, 0),
            Point::ChangeBegun => (Self::ChangeBegun, 0),
            Point::Asked => (Self::Asked, 0),
            Point::RequestOut => (Self::RequestOut, 0),
            Point::HalfTaken => (Self::HalfTaken, 0),
            Point::HandedOver => (Self::HandedOver, 0),
            Point::Taken => (Self::Taken, 0),
            Point::Looked => (Self::Looked, 0),
            Point::Woken => (Self::Woken, 0),
            Point::Port(PortPoint::PortRead) => (Self::PortRead, 0),
            Point::Port(PortPoint::KeyChecked) => (Self::PortKeyChecked, 0),
            Point::Port(PortPoint::Notified) => (Self::PortNotified, 0),
            Point::Port(PortPoint::Taken) => (Self::PortTaken, 0),
            Point::Port(PortPoint::Parked) => (Self::PortParked, 0),
            Point::Port(PortPoint::Resumed) => (Self::PortResumed, 0),
            Point::Udm(UdmPoint::Injected) => (Self::Injected, 0),
            Point::Udm(UdmPoint::Upcall) => (Self::Upcall, 0),
            Point::Udm(UdmPoint::HandlerBegun) => (Self::HandlerBegun, 0),
            Point::Udm(UdmPoint::HandlerEnded) => (Self::HandlerEnded, 0),
            Point::Udm(UdmPoint::Disposed) => (Self::Disposed, 0),
            Point::Udm(UdmPoint::AtomBegun) => (Self::AtomBegun, 0),
            Point::Udm(UdmPoint::AtomEnded) => (Self::AtomEnded, 0),
        }
    }
}

/// A step as it stands in a machine's file: a span of a resource, once or for each so many bytes of
/// the point, or DMA of the point's bytes or of so many.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "toml::Table")]
pub(crate) struct RawStep {
    pub(crate) on: Option<String>,
    pub(crate) span: Time,
    pub(crate) each: Option<Count>,
    pub(crate) dma: Option<Direction>,
    pub(crate) bytes: Option<Count>,
    /// It is not done for fewer bytes than these.
    pub(crate) from: Option<Count>,
    /// Whether the next step needs what this one fetches.
    pub(crate) waits: bool,
    /// Whether the next step need not wait for this one: only the next use of its resource does.
    pub(crate) behind: bool,
}

impl TryFrom<toml::Table> for RawStep {
    type Error = String;

    fn try_from(mut table: toml::Table) -> Result<Self, String> {
        fn read<T: serde::de::DeserializeOwned>(value: toml::Value) -> Result<T, String> {
            value
                .try_into()
                .map_err(|error: toml::de::Error| error.to_string())
        }
        let mut take = |name: &str| table.remove(name);
        let on = take("on").map(read).transpose()?;
        let dma = take("dma").map(read).transpose()?;
        let waits = take("waits").map(read).transpose()?.unwrap_or(false);
        let behind = take("behind").map(read).transpose()?.unwrap_or(false);
        let each = take("each").map(read).transpose()?;
        let from = take("from").map(read).transpose()?;
        let rest = toml::Value::Table(table.clone());
        let (span, bytes) = match (&on, &dma) {
            (Some(_), None) => (read(rest)?, None),
            (None, Some(_)) if table.is_empty() => (Time::default(), None),
            (None, Some(_)) => (Time::default(), Some(read(rest)?)),
            _ => return Err("a step is on a resource, or it is dma in or out".to_owned()),
        };
        if dma.is_some() && each.is_some() || on.is_some() && waits {
            return Err("`each` is of a span, and `waits` of dma".to_owned());
        }
        if dma.is_some() && behind {
            return Err("`behind` is of a span".to_owned());
        }
        Ok(Self {
            on,
            span,
            each,
            dma,
            bytes,
            from,
            waits,
            behind,
        })
    }
}

/// A piece of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    /// What it occupies.
    pub(crate) resource: usize,
    /// For how long.
    pub(crate) span: Span,
    /// So long the next step has to wait afterwards, while this one's resource is free.
    pub(crate) then: Span,
    /// Whether what follows goes on at once.
    pub(crate) behind: bool,
}
