//! Request and reply.

use hamlyn::service::{
    Answered, Call, CallError, Client, Deferred, Pending, Service, ServiceOptions,
};
use hamlyn::{ConnectError, Wait};

use crate::peer::{Peer, pattern};
use crate::{Host, World};

const GROW: Wait = Wait::millis(10_000);

pub(crate) fn service(peer: &Peer, options: ServiceOptions) -> Service<Host> {
    let service = peer.with(|manager| manager.bind_service("service", options).unwrap());
    peer.put_address("service");
    service
}

pub(crate) fn client(peer: &Peer) -> Client<Host> {
    let to = peer.get_address("service");
    peer.until("a lane", |manager, _| {
        // Where all share an interface, nobody can be waited for.
        let wait = match peer.shares_interface() {
            true => Wait::millis(1),
            false => GROW,
        };
        match manager.connect_service(&to, wait) {
            Ok(client) => Some(client),
            Err(ConnectError::Reach(_)) => None,
            Err(error) => panic!("{error}"),
        }
    })
}

/// Answers so many calls with their bytes and one more.
fn serve(peer: &Peer, service: &mut Service<Host>, calls: usize) {
    for _ in 0..calls {
        peer.receive("a call", |_, wait| {
            let Some(call) = service.next(wait)? else {
                return Ok(None);
            };
            assert!(call.client().is_some());
            let mut answer = call.to_vec();
            answer.push(b'!');
            assert_eq!(call.reply(&answer), Ok(Answered::Sent));
            Ok(Some(()))
        });
    }
}

/// The next call, which is answered later.
fn put_off(peer: &Peer, service: &mut Service<Host>) -> Deferred {
    peer.receive("a call", |_, wait| Ok(service.next(wait)?.map(Call::defer)))
}

/// Waits until the client is told that its service has ended, or wants it no more.
fn await_end(peer: &Peer, client: &mut Client<Host>) {
    peer.until("the end", |_, wait| match client.call(b"again", wait) {
        Err(CallError::Dismissed { .. }) => Some(()),
        Err(CallError::TimedOut { .. }) => None,
        other => panic!("{other:?}"),
    });
}

pub(crate) fn start(peer: &Peer, client: &mut Client<Host>, request: &[u8]) -> Pending {
    peer.until("room for a call", |_, wait| {
        match client.start(request, wait) {
            Ok(call) => Some(call),
            Err(CallError::TimedOut { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    })
}

fn finish(peer: &Peer, client: &mut Client<Host>, call: &Pending) -> Result<Vec<u8>, CallError> {
    peer.until("a reply", |_, wait| match client.reply(call, wait) {
        Ok(reply) => reply.map(|reply| Ok(reply.to_vec())),
        Err(error) => Some(Err(error)),
    })
}

fn call(peer: &Peer, client: &mut Client<Host>, request: &[u8]) -> Result<Vec<u8>, CallError> {
    let call = start(peer, client, request);
    finish(peer, client, &call)
}

pub(crate) fn a_service_answers_several_clients(world: &World) {
    const CALLS: usize = 40;
    let asks: &(dyn Fn(&mut Peer) + Sync) = &|peer| {
        let mut client = client(peer);
        for round in 0..CALLS {
            let request = pattern(round as u64, round);
            let reply = call(peer, &mut client, &request).unwrap();
            assert_eq!(reply, [&request[..], b"!"].concat());
        }
    };
    world.run(&[
        &|peer| {
            let mut service = service(peer, ServiceOptions::default());
            serve(peer, &mut service, 3 * CALLS);
        },
        asks,
        asks,
        asks,
    ]);
}

pub(crate) fn calls_are_answered_in_any_order(world: &World) {
    const CALLS: usize = 5;
    let options = ServiceOptions {
        outstanding: CALLS as u16,
        ..ServiceOptions::default()
    };
    world.run(&[
        &|peer| {
            let mut service = service(peer, options);
            for _ in 0..4 {
                let mut held = Vec::new();
                while held.len() < CALLS {
                    held.push(put_off(peer, &mut service));
                }
                while !held.is_empty() {
                    let call = held.remove(held.len() * 3 / 5);
                    let request = service.request(&call).unwrap().to_vec();
                    let answered = peer.with(|_| service.reply(call, &request));
                    assert_eq!(answered, Ok(Answered::Sent));
                }
            }
            peer.get("all answered");
        },
        &|peer| {
            let mut client = client(peer);
            assert_eq!(usize::from(client.outstanding_max()), CALLS);
            for round in 0..4 {
                let requests: Vec<_> = (0..CALLS)
                    .map(|n| pattern(round * 9 + n as u64, 50))
                    .collect();
                let calls: Vec<_> = requests
                    .iter()
                    .map(|request| start(peer, &mut client, request))
                    .collect();
                // There is no place for another.
                let more = peer.with(|_| client.start(b"one more", Wait::Poll));
                assert!(matches!(more, Err(CallError::AllOutstanding { .. })));
                for (call, request) in calls.iter().zip(&requests).rev() {
                    assert_eq!(&finish(peer, &mut client, call).unwrap(), request);
                }
            }
            peer.put("all answered", &[]);
        },
    ]);
}

pub(crate) fn a_call_that_is_given_up_costs_no_place(world: &World) {
    let options = ServiceOptions {
        outstanding: 2,
        ..ServiceOptions::default()
    };
    world.run(&[
        &|peer| {
            let mut service = service(peer, options);
            for round in 0..5 {
                let late = put_off(peer, &mut service);
                assert_eq!(service.request(&late).unwrap(), b"given up");
                peer.put(&format!("asked {round}"), &[]);
                // It is given up before the next is made; the client says so then.
                serve(peer, &mut service, 1);
                let answered = peer.with(|_| service.reply(late, b"too late"));
                let is_right = matches!(answered, Ok(Answered::Cancelled));
                assert!(is_right || !peer.is_in_order, "{answered:?}");
            }
        },
        &|peer| {
            let mut client = client(peer);
            for round in 0..5 {
                let lost = start(peer, &mut client, b"given up");
                peer.get(&format!("asked {round}"));
                let none = peer.with(|_| client.reply(&lost, Wait::Poll).unwrap().is_none());
                assert!(none);
                drop(lost);
                assert_eq!(call(peer, &mut client, b"next").unwrap(), b"next!");
            }
        },
    ]);
}

pub(crate) fn a_dropped_call_is_told_and_so_is_the_end(world: &World) {
    world.run(&[
        &|peer| {
            let mut service = service(peer, ServiceOptions::default());
            peer.receive("a call", |_, wait| Ok(service.next(wait)?.map(drop)));
            peer.receive("a call", |_, wait| {
                let call = service.next(wait)?;
                Ok(call.map(|call| drop(call.defer())))
            });
            serve(peer, &mut service, 1);
            peer.with(|_| drop(service));
        },
        &|peer| {
            let mut client = client(peer);
            for _ in 0..2 {
                let error = call(peer, &mut client, b"?").unwrap_err();
                assert!(matches!(error, CallError::Unanswered { .. }), "{error}");
            }
            assert_eq!(call(peer, &mut client, b"yes").unwrap(), b"yes!");
            await_end(peer, &mut client);
        },
    ]);
}

/// More answers than link and work queue hold, given by a service that ends at once.
pub(crate) fn answers_that_were_accepted_come_before_the_end(world: &World) {
    const CALLS: usize = 400;
    let options = ServiceOptions {
        outstanding: CALLS as u16,
        ..ServiceOptions::default()
    };
    world.run(&[
        &|peer| {
            let mut service = service(peer, options);
            let mut held = Vec::new();
            while held.len() < CALLS {
                held.push(put_off(peer, &mut service));
            }
            peer.with(|_| {
                for (number, call) in held.into_iter().enumerate() {
                    let answer = pattern(number as u64, 100);
                    assert_eq!(service.reply(call, &answer), Ok(Answered::Sent));
                }
                drop(service);
            });
            peer.until("all to be sent", |manager, wait| {
                manager.flush(wait).unwrap().then_some(())
            });
            peer.get("taken");
        },
        &|peer| {
            let mut client = client(peer);
            let calls: Vec<_> = (0..CALLS).map(|_| start(peer, &mut client, b"?")).collect();
            for (number, call) in calls.iter().enumerate() {
                let reply = finish(peer, &mut client, call).unwrap();
                assert_eq!(reply, pattern(number as u64, 100));
            }
            await_end(peer, &mut client);
            peer.put("taken", &[]);
        },
    ]);
}

pub(crate) fn a_dismissed_client_is_told_and_others_are_served(world: &World) {
    let asks: &(dyn Fn(&mut Peer) + Sync) = &|peer| {
        let mut client = client(peer);
        assert_eq!(call(peer, &mut client, b"good").unwrap(), b"good!");
        peer.get("dismissed");
        assert_eq!(call(peer, &mut client, b"good").unwrap(), b"good!");
    };
    world.run(&[
        &|peer| {
            let mut service = service(peer, ServiceOptions::default());
            serve(peer, &mut service, 1);
            peer.put("one served", &[]);
            let whom = peer.receive("a call", |_, wait| {
                let Some(call) = service.next(wait)? else {
                    return Ok(None);
                };
                assert_eq!(*call, *b"bad");
                Ok(call.client())
            });
            if peer.shares_interface() {
                // All are one client to it.
                peer.put("dismissed", &[]);
            } else {
                assert!(peer.with(|_| service.dismiss(whom.link)));
                assert!(!peer.with(|_| service.dismiss(whom.link)));
                peer.put("dismissed", &[]);
            }
            serve(peer, &mut service, 1);
            peer.get("told");
        },
        asks,
        &|peer| {
            let mut client = client(peer);
            peer.get("one served");
            let error = call(peer, &mut client, b"bad").unwrap_err();
            let is_told = matches!(
                error,
                CallError::Unanswered { .. } | CallError::Dismissed { .. }
            );
            assert!(is_told, "{error}");
            if !peer.shares_interface() {
                await_end(peer, &mut client);
            }
            peer.put("told", &[]);
        },
    ]);
}

pub(crate) fn requests_and_replies_of_every_size(world: &World) {
    const LENGTHS: [usize; 8] = [0, 1, 16, 17, 4_000, 66_000, 150_000, 199_999];
    let options = ServiceOptions {
        request_bytes: 200_000,
        reply_bytes: 200_000,
        outstanding: 3,
        clients: 2,
    };
    world.run(&[
        &|peer| {
            let mut service = service(peer, options);
            serve(peer, &mut service, LENGTHS.len());
            peer.receive("a call", |_, wait| {
                let Some(call) = service.next(wait)? else {
                    return Ok(None);
                };
                let error = call.reply(&vec![0; 200_001]).unwrap_err();
                assert!(error.to_string().contains("200001 bytes"), "{error}");
                Ok(Some(()))
            });
        },
        &|peer| {
            let mut client = client(peer);
            for length in LENGTHS {
                let request = pattern(length as u64, length);
                let reply = call(peer, &mut client, &request).unwrap();
                assert!(reply == [&request[..], b"!"].concat(), "{length}");
            }
            let error = peer.with(|_| client.start(&vec![0; 200_001], GROW).map(drop));
            assert!(matches!(error, Err(CallError::TooLong { .. })), "{error:?}");
            let error = call(peer, &mut client, b"?").unwrap_err();
            assert!(matches!(error, CallError::Unanswered { .. }), "{error}");
        },
    ]);
}

/// More clients come and go than there are lanes.
pub(crate) fn lanes_of_clients_that_left_are_given_again(world: &World) {
    const CLIENTS: usize = 12;
    let options = ServiceOptions {
        clients: 3,
        ..ServiceOptions::default()
    };
    world.run(&[
        &|peer| {
            let mut service = service(peer, options);
            serve(peer, &mut service, CLIENTS);
            // The last says good-bye.
            peer.until("the end", |_, _| {
                let none = service.next(Wait::Poll).unwrap().is_none();
                assert!(none);
                peer.key_values.get("end").map(|_| ())
            });
            assert_eq!(service.misbehaved(), 0);
        },
        &|peer| {
            for _ in 0..CLIENTS {
                let mut client = client(peer);
                assert_eq!(call(peer, &mut client, b"hi").unwrap(), b"hi!");
                peer.with(|_| drop(client));
                peer.flush();
            }
            peer.put("end", &[]);
        },
    ]);
}
