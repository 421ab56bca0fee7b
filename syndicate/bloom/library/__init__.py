"""Programs to build on: each file holds one, to be subclassed, mixed in, or imported as a module.

* :mod:`delivery`: rows to another address, as they come, until acknowledged, or each once.
* :mod:`causal`: what was said before arrives before.
* :mod:`multicast`: what one member of a group says, all hear, who said it fails or not; causes first, if need be.
* :mod:`membership`: who is in a group, passed from one to the next.
* :mod:`voting`: a quorum of a fixed electorate, counted by lattices.
* :mod:`commit`: two-phase commit, by a unanimous vote.
* :mod:`three_phase`: three-phase commit, for nodes that stop and messages that are never late.
* :mod:`election`: one leader in each term, by a majority, and another when it is heard of no more.
* :mod:`paxos`: for each slot one value, by consensus, and a log of commands on it.
* :mod:`sealing`: parts that are looked at when all of them is there.
* :mod:`cart`, :mod:`carts`, :mod:`shopper`: the shopping carts of the Bloom papers, and who fills them.
* :mod:`store`: replicas that keep versions under vector clocks; quorums, siblings, read repair.
* :mod:`session`: a client of such replicas that asks any one, and never goes back behind what it has seen.
* :mod:`chord`: who of many keeps a key, found in a logarithmic number of steps.
* :mod:`paths`: shortest paths that stay short as links come.

Who is meant is an address; what does not change while a program runs (who may vote, who keeps replicas) is an
attribute of its class.  Nothing here reads a clock: where messages may be lost, ``timer`` says when to send again.

Source: Alvaro et al. 2011a; Conway et al. 2012; ``docs/design/bloom.md``, "The library".
"""
