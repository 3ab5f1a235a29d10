//! Routes: the link from a node towards an address.

use std::net::IpAddr;

/// A node of the topology: a host, or a router if it has no host.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NodeId(pub u16);

/// One direction of a link, by its position in the topology.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkId(pub u16);

impl NodeId {
    /// Index into tables by node.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// Index into tables by link.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The routing tables of all nodes. The destination alone determines the route, as in routers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Routes {
    /// Routes of each node; tables have a few entries.
    tables: Vec<Vec<(IpAddr, LinkId)>>,
}

impl Routes {
    /// Routes packets for `destination` at `node` over `link`; a later call replaces an earlier one.
    pub fn add(&mut self, node: NodeId, destination: IpAddr, link: LinkId) {
        if self.tables.len() <= node.index() {
            self.tables.resize(node.index() + 1, Vec::new());
        }
        let table = &mut self.tables[node.index()];
        table.retain(|(address, _)| *address != destination);
        table.push((destination, link));
    }

    /// Returns the link from `node` towards `destination`, if there is one.
    pub fn next(&self, node: NodeId, destination: IpAddr) -> Option<LinkId> {
        let table = self.tables.get(node.index())?;
        table.iter().find(|(address, _)| *address == destination).map(|(_, link)| *link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_looked_up_by_node_and_destination() {
        let (near, far): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [10, 0, 1, 1].into());
        let mut routes = Routes::default();
        routes.add(NodeId(1), near, LinkId(4));
        routes.add(NodeId(1), far, LinkId(5));
        routes.add(NodeId(1), near, LinkId(6));
        assert_eq!(routes.next(NodeId(1), near), Some(LinkId(6)));
        assert_eq!(routes.next(NodeId(1), far), Some(LinkId(5)));
        assert_eq!(routes.next(NodeId(0), near), None);
        assert_eq!(routes.next(NodeId(9), near), None);
    }
}
