//! Graphs of links: who is connected with whom, which addresses they have, and which way packets go.

use std::net::{IpAddr, Ipv4Addr};

use crate::link::LinkSpec;
use crate::route::{LinkId, NodeId, Routes};

/// One direction of a link in the graph.
#[derive(Clone, PartialEq, Debug)]
pub struct Edge {
    /// A name, unique in the topology: it seeds the link's generator and names it in captures.
    pub name: String,
    /// Where packets enter.
    pub from: NodeId,
    /// Where they come out.
    pub to: NodeId,
    /// What the link is like.
    pub spec: LinkSpec,
}

/// A graph of links between nodes, with routes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Topology {
    /// Addresses of each node; a node without any is a router.
    pub addresses: Vec<Vec<IpAddr>>,
    /// Links by [`LinkId`].
    pub edges: Vec<Edge>,
    /// Which link leads where.
    pub routes: Routes,
}

/// Two hosts and the links of each path between them.
#[derive(Clone, PartialEq, Debug)]
pub struct Disjoint {
    /// The graph.
    pub topology: Topology,
    /// The host that opens the association.
    pub sender: NodeId,
    /// The host that accepts it.
    pub receiver: NodeId,
    /// By path: the link from sender to receiver, and the one back.
    pub paths: Vec<(LinkId, LinkId)>,
}

impl Topology {
    /// Adds a node.
    pub fn add_node(&mut self, addresses: Vec<IpAddr>) -> NodeId {
        let node = NodeId(self.addresses.len() as u16);
        self.addresses.push(addresses);
        node
    }

    /// Adds one direction of a link.
    pub fn add_link(&mut self, name: impl Into<String>, from: NodeId, to: NodeId, spec: LinkSpec) -> LinkId {
        let link = LinkId(self.edges.len() as u16);
        self.edges.push(Edge { name: name.into(), from, to, spec });
        link
    }

    /// Two hosts joined by paths that share nothing; each path is its (forward, backward) links, and each host
    /// has one address on each path: 10.0.*path*.1 the sender, 10.0.*path*.2 the receiver.
    pub fn disjoint(paths: &[(LinkSpec, LinkSpec)]) -> Disjoint {
        let address = |path: usize, host: u8| IpAddr::V4(Ipv4Addr::new(10, 0, path as u8, host));
        let mut topology = Topology::default();
        let sender = topology.add_node((0..paths.len()).map(|path| address(path, 1)).collect());
        let receiver = topology.add_node((0..paths.len()).map(|path| address(path, 2)).collect());
        let mut links = Vec::with_capacity(paths.len());
        for (path, (forward, backward)) in paths.iter().enumerate() {
            let there = topology.add_link(format!("path {path} forward"), sender, receiver, forward.clone());
            let back = topology.add_link(format!("path {path} backward"), receiver, sender, backward.clone());
            topology.routes.add(sender, address(path, 2), there);
            topology.routes.add(receiver, address(path, 1), back);
            links.push((there, back));
        }
        Disjoint { topology, sender, receiver, paths: links }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn disjoint_paths_have_their_own_addresses_and_links() {
        let spec = LinkSpec::new(10_000_000, Duration::from_millis(10));
        let slow = LinkSpec { rate: 1_000_000, ..spec.clone() };
        let disjoint = Topology::disjoint(&[(spec.clone(), spec.clone()), (slow, spec)]);
        let topology = &disjoint.topology;
        assert_eq!(topology.addresses[0], [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 1, 1])]);
        let (there, back) = disjoint.paths[1];
        assert_eq!(topology.edges[there.index()].spec.rate, 1_000_000);
        assert_eq!(topology.routes.next(disjoint.sender, [10, 0, 1, 2].into()), Some(there));
        assert_eq!(topology.routes.next(disjoint.receiver, [10, 0, 1, 1].into()), Some(back));
        assert_eq!(topology.routes.next(disjoint.sender, [10, 0, 7, 2].into()), None);
    }
}
