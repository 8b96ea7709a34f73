//! Operations on versions, and the graph of their orders.

use std::collections::BTreeMap;

/// An operation that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) node: usize,
    pub(crate) region: usize,
    pub(crate) is_write: bool,
    /// The version that it has read, or written.
    pub(crate) version: u64,
}

/// True if the graph of program order and of each region's versions has a circle: a write comes
/// after all that saw the version before it.
pub(crate) fn has_circle(records: &[Record]) -> bool {
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); records.len()];
    let mut last_of_node: BTreeMap<usize, usize> = BTreeMap::new();
    let mut writes: BTreeMap<(usize, u64), usize> = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        if let Some(before) = last_of_node.insert(record.node, at) {
            after[before].push(at);
        }
        if record.is_write {
            let other = writes.insert((record.region, record.version), at);
            assert!(other.is_none(), "two writes made one version: {record:?}");
        }
    }
    for (at, record) in records.iter().enumerate() {
        let write_of = |version| writes.get(&(record.region, version)).copied();
        let (before, next) = match record.is_write {
            true => (write_of(record.version - 1), None),
            false => (write_of(record.version), write_of(record.version + 1)),
        };
        if let Some(before) = before {
            after[before].push(at);
        }
        after[at].extend(next);
    }
    let mut before = vec![0; records.len()];
    after.iter().flatten().for_each(|next| before[*next] += 1);
    let mut free: Vec<usize> = (0..records.len()).filter(|at| before[*at] == 0).collect();
    let mut taken = 0;
    while let Some(at) = free.pop() {
        taken += 1;
        for next in &after[at] {
            before[*next] -= 1;
            if before[*next] == 0 {
                free.push(*next);
            }
        }
    }
    taken < records.len()
}

#[test]
fn the_graph_finds_circles() {
    let record = |node, region, is_write, version| Record {
        node,
        region,
        is_write,
        version,
    };
    let (read, write) = (false, true);
    // Each node reads what it should have seen overwritten.
    let bad = [
        record(0, 0, write, 1),
        record(0, 1, read, 0),
        record(1, 1, write, 1),
        record(1, 0, read, 0),
    ];
    assert!(has_circle(&bad));
    assert!(!has_circle(&bad[..3]));
}
