//! End points are bound to items of a manager, and others connect to them (`Hamlyn 6.3`).

use hamlyn_host::{
    Address, ConnectError as Reach, Host, HostError, RefusedBecause, Supply, Wanted,
};

use crate::core::Core;
use crate::error::{ConnectError, OpenError, SendError};

use crate::item::{Bound, EndPoint, Found, ItemHeader, Which};
use crate::message::Target;
use crate::session::Session;
use crate::wait::{Wait, Waiting};

impl<H: Host> Core<H> {
    /// Binds an end point to an item: `body` is what connects to it. With [`Supply::Once`] those
    /// who ask later are told that others were first.
    pub(crate) fn bind(
        &mut self,
        item: &str,
        header: ItemHeader,
        body: &[u8],
        supply: Supply,
    ) -> Result<Bound, OpenError> {
        let bound = self.bind_empty(item, header)?;
        self.offer_bound(&bound, body, supply)?;
        Ok(bound)
    }

    /// Binds an item under which nothing is offered yet.
    pub(crate) fn bind_empty(
        &mut self,
        item: &str,
        header: ItemHeader,
    ) -> Result<Bound, OpenError> {
        self.reap();
        if item.contains('/') {
            return Err(OpenError::BadItem {
                item: item.to_owned(),
                reason: "it has no slash, which parts it from the name of its manager",
            });
        }
        if !self.items.insert(item.to_owned()) {
            return Err(OpenError::ItemTaken {
                item: item.to_owned(),
            });
        }
        Ok(Bound {
            item: item.to_owned(),
            header,
            leaving: self.interface.leaving.clone(),
        })
    }

    /// Offers something else under an item.
    pub(crate) fn offer_bound(
        &mut self,
        bound: &Bound,
        body: &[u8],
        supply: Supply,
    ) -> Result<(), OpenError> {
        let header = bound.header;
        let interface = &mut self.interface;
        interface.offer(&bound.item, supply, &header.with(body))?;
        if supply == Supply::Once {
            interface.offer(&bound.item, Supply::Afterwards, &header.with(&[]))?;
        }
        Ok(())
    }

    /// Offers one of `most` places under an item, to one asker who has not its share of them: its
    /// number.
    pub(crate) fn offer_place(
        &mut self,
        bound: &Bound,
        most: u16,
        body: &[u8],
    ) -> Result<u64, OpenError> {
        let offer = bound.header.with(body);
        let interface = &mut self.interface;
        Ok(interface.offer_place(&bound.item, u32::from(most), &offer)?)
    }

    /// No further place could be had: those who ask in vain are told so.
    pub(crate) fn run_short(&mut self, bound: &Bound) {
        self.interface.run_short(&bound.item);
    }

    /// How many offers under an item no peer has asked for.
    pub(crate) fn offered_under(&self, bound: &Bound) -> usize {
        self.interface.host().offered(&bound.item)
    }

    /// Takes back what is offered under an item.
    pub(crate) fn withdraw_bound(&mut self, bound: &Bound) {
        self.interface.withdraw(&bound.item);
    }
}

impl<H: Host> Session<'_, H> {
    /// Connects to an end point of that kind: `connect` does, to what is offered under its address,
    /// in what is left of the wait. It gives the end, and where its greeting went, if it sent one.
    ///
    /// The result of a look-up is used first, unless its owner may have taken it back.
    ///
    /// The offer may be for one peer alone. So if the attempt comes to nothing for want of time or
    /// of something of ours, or asks for another type, the next one has the same offer. If the offer was kept, or the
    /// greeting left so late that the owner may have taken the offer back, the owner's answer is
    /// waited for, and another offer is asked for if need be: nobody is connected to an end point
    /// that does not know of it.
    pub(crate) fn connect_to<E>(
        &mut self,
        to: EndPoint<'_>,
        header: ItemHeader,
        wait: Wait,
        mut connect: impl FnMut(&mut Self, &[u8], Wait) -> Result<(E, Option<Target>), ConnectError>,
    ) -> Result<E, ConnectError> {
        let mut waiting = Waiting::new(wait);
        let is_for_one = header.protocol.is_offered_to_one();
        let to_address = to.address().to_owned();
        let mut looked_up = match to.0 {
            Which::Found(found) => Some(found),
            Which::At(_) => None,
        };
        loop {
            let (left, now_ns) = (self.left(&mut waiting), self.host().now_ns());
            let is_good = |found: &Found| !is_for_one || found.is_fresh(now_ns);
            let good = looked_up.take().filter(is_good);
            let kept = match good {
                Some(_) => None,
                None => self.core.found.take(&to_address, header, now_ns),
            };
            let was_kept = kept.is_some();
            let (found, left) = match good.or(kept) {
                Some(found) => (found, left),
                None => self.find(&to_address, left, &mut waiting)?,
            };
            let body = match header.body_of(&found.offered, &to_address) {
                Ok(body) => body,
                Err(error) => {
                    // It was given to this one, which may ask for it as what it is.
                    if found.is_for_one() {
                        self.core.found.keep(found);
                    }
                    return Err(error);
                }
            };
            match connect(self, &body, left) {
                Ok((end, greeted)) => {
                    let is_known = match greeted {
                        Some(target) => self.is_known(&target, &found, was_kept, &mut waiting)?,
                        None => true,
                    };
                    if is_known {
                        return Ok(end);
                    }
                }
                Err(error) => {
                    if is_for_one && is_for_now(&error) {
                        self.core.found.keep(found);
                    }
                    // For all that the attempt had opened.
                    self.core.reap();
                    return Err(error);
                }
            }
        }
    }

    /// True if the owner of what was found knows that a greeting came there, or will at its next
    /// look.
    fn is_known(
        &mut self,
        target: &Target,
        found: &Found,
        was_kept: bool,
        waiting: &mut Waiting,
    ) -> Result<bool, ConnectError> {
        let is_fresh = |session: &Self| found.is_fresh(session.host().now_ns());
        if is_fresh(self) && !was_kept {
            return Ok(true);
        }
        let mut fence = self.begin_fence_to(target.link(), target.ticket().destination);
        let answered = self.wait_within(waiting, |session, _| {
            let is_over = session.continue_fence(&mut fence);
            Ok::<_, HostError>(is_over.then_some(()))
        });
        if answered.map_err(Reach::Host)?.is_none() {
            if is_fresh(self) {
                return Ok(true);
            }
            let to = found.to.clone();
            return Err(Reach::Stalled { to, silence: None }.into());
        }
        // The program's next fence tells what this one has found refused.
        drop(fence);
        Ok(!self.is_closed_there(target))
    }

    /// The offer under an address, and the rest of the wait.
    fn find(
        &mut self,
        to: &str,
        wait: Wait,
        waiting: &mut Waiting,
    ) -> Result<(Found, Wait), ConnectError> {
        // One for each address.
        let found = self.look_up(&[to], wait).into_iter().next();
        let nothing = || ConnectError::Address { to: to.to_owned() };
        Ok((found.ok_or_else(nothing)??, self.left(waiting)))
    }

    /// Looks up many end points at once, as [`Manager::look_up`](crate::Manager::look_up) does.
    pub fn look_up(
        &mut self,
        addresses: &[impl AsRef<str>],
        wait: Wait,
    ) -> Vec<Result<Found, ConnectError>> {
        if let Err(forked) = self.check() {
            return addresses.iter().map(|_| Err(forked.into())).collect();
        }
        let parts: Vec<_> = addresses.iter().map(|to| parts_of(to.as_ref())).collect();
        let as_wanted = |&(name, item)| Wanted {
            to: Address::Name(name),
            item,
        };
        let wanted: Vec<_> = parts.iter().flatten().map(as_wanted).collect();
        let mut given = self.ask_all(&wanted, wait).into_iter();
        let outcomes = addresses.iter().zip(&parts).map(|(to, parts)| {
            let to = to.as_ref().to_owned();
            match parts.and_then(|_| given.next()) {
                Some(given) => {
                    let given = given?;
                    Ok(Found {
                        to,
                        offered: given.bytes,
                        asked_ns: given.asked_ns,
                    })
                }
                None => Err(ConnectError::Address { to }),
            }
        });
        outcomes.collect()
    }
}

/// The name of a manager and its item, if that is an address of an end point.
fn parts_of(to: &str) -> Option<(&str, &str)> {
    to.rsplit_once('/').filter(|(name, item)| {
        let is_of_few_parts = name.matches('/').count() <= 1;
        !name.split('/').any(str::is_empty) && !item.is_empty() && is_of_few_parts
    })
}

/// Whether another attempt with the same offer may succeed.
fn is_for_now(error: &ConnectError) -> bool {
    matches!(
        error,
        ConnectError::Reach(
            Reach::Stalled { .. }
                | Reach::Refused {
                    reason: RefusedBecause::BUSY,
                    ..
                }
                | Reach::Host(_),
        ) | ConnectError::Open(_)
            | ConnectError::Send(SendError::WouldBlock { .. } | SendError::Host(_))
    )
}
