//! End points are bound to items of a manager, and others connect to them (`Hamlyn 6.3`).

use hamlyn_host::{Address, ConnectError as Reach, Host, HostError, RefusedBecause, Supply};

use crate::core::Core;
use crate::error::{ConnectError, OpenError};

use crate::item::{Bound, Found, ItemHeader};
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
    /// Connects to an end point of that kind: `connect` does, to what is offered under the address
    /// `to`, in what is left of the wait. It gives the end, and where its greeting went, if it sent
    /// one.
    ///
    /// The offer may be for one peer alone. So if the attempt comes to nothing for want of time, or
    /// of something of ours, the next one has the same offer. If the offer was kept, or the
    /// greeting left so late that the owner may have taken the offer back, the owner's answer is
    /// waited for, and another offer is asked for if need be: nobody is connected to an end point
    /// that does not know of it.
    pub(crate) fn connect_to<E>(
        &mut self,
        to: &str,
        header: ItemHeader,
        wait: Wait,
        mut connect: impl FnMut(&mut Self, &[u8], Wait) -> Result<(E, Option<Target>), ConnectError>,
    ) -> Result<E, ConnectError> {
        let mut waiting = Waiting::new(wait);
        loop {
            let (left, now_ns) = (self.left(&mut waiting), self.host().now_ns());
            let kept = self.core.found.take(to, header, now_ns);
            let was_kept = kept.is_some();
            let (found, left) = match kept {
                Some(found) => (found, left),
                None => self.find(to, header, left)?,
            };
            match connect(self, &found.body, left) {
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
                    if header.protocol.is_offered_to_one() && is_for_now(&error) {
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

    /// What is offered under an address, and what is left of the wait.
    fn find(
        &mut self,
        to: &str,
        header: ItemHeader,
        wait: Wait,
    ) -> Result<(Found, Wait), ConnectError> {
        let parts = to.rsplit_once('/');
        let Some((name, item)) = parts.filter(|(name, item)| {
            let is_of_few_parts = name.matches('/').count() <= 1;
            !name.split('/').any(str::is_empty) && !item.is_empty() && is_of_few_parts
        }) else {
            return Err(ConnectError::Address { to: to.to_owned() });
        };
        let mut waiting = Waiting::new(wait);
        let wait = self.left(&mut waiting);
        let given = self.ask_when(Address::Name(name), item, wait)?;
        let found = Found {
            to: to.to_owned(),
            header,
            body: header.body_of(&given.bytes, to)?,
            asked_ns: given.asked_ns,
        };
        Ok((found, self.left(&mut waiting)))
    }
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
    )
}
