//! Most tests of the library: one program is built much sooner than one for each file. Those that
//! start other processes, fork, count descriptors or processor time are programs of their own.

mod support;

mod bad_input;
mod blocking_reads;
mod completion_of_the_lost;
mod connecting;
mod corpus;
mod dropped_handles;
mod ends;
mod failed_attempts;
mod hostile;
mod hostile_loans;
mod hostile_memory;
mod hostile_single;
mod lanes;
mod latest_value;
mod listening;
mod many_peers;
mod passed_tags;
mod ports;
mod protocol_faults;
mod rounds;
mod services;
mod sessions;
mod sleepers;
mod stream_order;
mod task_wakes;
mod threads;
mod turns;
