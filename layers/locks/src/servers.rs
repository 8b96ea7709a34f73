//! The servers of a system, and which of them masters a resource.

use crate::error::LockError;

/// FNV-1a, of which the same bytes have the same in every program.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Spreads a number over 64 bits (the finaliser of splitmix64).
fn spread(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// The servers of a system, in any order.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    hashes: Vec<u64>,
}

impl Servers {
    pub(crate) fn new(names: &[&str]) -> Result<Self, LockError> {
        let what = match names {
            [] => "it is empty",
            _ if (1..names.len()).any(|at| names[..at].contains(&names[at])) => {
                "it names a server twice"
            }
            _ => {
                let hashes = names.iter().map(|name| spread(hash(name.as_bytes())));
                return Ok(Self {
                    hashes: hashes.collect(),
                });
            }
        };
        Err(LockError::Servers { what })
    }

    /// The server that masters a resource: the one with the highest weight for its name, so that
    /// another server more or less moves only what it has (rendezvous hashing).
    pub(crate) fn master(&self, name: &[u8]) -> usize {
        let name = hash(name);
        let weight = |server: &u64| spread(server ^ name);
        let heaviest = self
            .hashes
            .iter()
            .enumerate()
            .max_by_key(|(_, server)| weight(server));
        heaviest.map_or(0, |(server, _)| server)
    }

    /// The same for the same servers in any order.
    pub(crate) fn digest(&self) -> [u32; 2] {
        let sum = self
            .hashes
            .iter()
            .fold(0_u64, |sum, one| sum.wrapping_add(*one));
        [sum as u32, (sum >> 32) as u32]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_spread_over_servers_and_stay() {
        let names: Vec<String> = (0..3_000).map(|number| format!("row/{number}")).collect();
        let three = ["a", "b", "c"];
        let masters = |servers: &[&'static str]| -> Vec<&'static str> {
            let set = Servers::new(servers).unwrap();
            names
                .iter()
                .map(|name| servers[set.master(name.as_bytes())])
                .collect()
        };
        let before = masters(&three);
        assert_eq!(before, masters(&["c", "a", "b"]), "in any order");
        for server in three {
            let share = before.iter().filter(|master| **master == server).count();
            assert!((800..1200).contains(&share), "{server} has {share}");
        }
        let moved = before
            .iter()
            .zip(masters(&["a", "b"]))
            .filter(|(old, new)| *old != new);
        assert!(
            moved.into_iter().all(|(old, _)| *old == "c"),
            "only those of the one that went"
        );
        let digest = |servers: &[&str]| Servers::new(servers).unwrap().digest();
        assert_eq!(digest(&three), digest(&["b", "c", "a"]));
        assert_ne!(digest(&three), digest(&["a", "b"]));
    }
}
