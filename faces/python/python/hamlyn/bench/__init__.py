"""`python -m hamlyn.bench`: messages between two Python processes, by this package and by what else there is, in one run.

Ways: `Datagram` and `Channel` and `Loan` of this package, `multiprocessing.Pipe`, ZeroMQ over ipc if pyzmq is installed, and
`multiprocessing.shared_memory` with a flag that both processes poll, the quickest that can be built with it, and a processor for each.

Measured for each length: the time of one message one way, half of a round trip, the best of several runs; and messages each second, when
one process sends and the other receives as fast as they can. The bytes are those of `bytes`, and the receiver has them as `bytes`, unless
said otherwise. Each way is measured in turn in each round, so that what else the machine does meets all of them.
"""
