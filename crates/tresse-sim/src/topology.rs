//! Topologies: graphs of links, the addresses of nodes, and routes.

use std::net::{IpAddr, Ipv4Addr};

use crate::link::LinkSpec;
use crate::route::{LinkId, NodeId, Routes};
use crate::scenario::Resolved;

/// One direction of a link in the graph.
#[derive(Clone, PartialEq, Debug)]
pub struct Edge {
    /// Name, unique in the topology: the link's generator is derived from it, and captures contain it.
    pub name: String,
    /// Node at which packets enter.
    pub from: NodeId,
    /// Node at which packets arrive.
    pub to: NodeId,
    /// Properties of the link.
    pub spec: LinkSpec,
}

/// A graph of links between nodes, with routes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Topology {
    /// Addresses of each node; a node without any is a router.
    pub addresses: Vec<Vec<IpAddr>>,
    /// Links by [`LinkId`].
    pub edges: Vec<Edge>,
    /// Next link for each node and destination.
    pub routes: Routes,
}

/// Two hosts, the links of each path between them, and the pairs of hosts of cross traffic.
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    /// The graph.
    pub topology: Topology,
    /// The host that opens the association.
    pub sender: NodeId,
    /// The host that accepts the association.
    pub receiver: NodeId,
    /// Links of each path.
    pub paths: Vec<PathLinks>,
    /// Hosts of each pair: the host on the sender's side, and the host on the receiver's side.
    pub pairs: Vec<(NodeId, NodeId)>,
}

/// The links of a path. A path that is neither shared nor crossed has two links. Any other path has routers at both
/// ends of these, and each host has access links of its own to and from the routers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PathLinks {
    /// The path's own link towards the receiver.
    pub forward: LinkId,
    /// The path's own link towards the sender.
    pub backward: LinkId,
    /// First link of the sender's packets, from the sender.
    pub departs: LinkId,
    /// Last link of the sender's packets, to the receiver.
    pub arrives: LinkId,
    /// Last link of the receiver's packets, to the sender.
    pub returns: LinkId,
}

impl Topology {
    /// Adds a node and returns its number.
    pub fn add_node(&mut self, addresses: Vec<IpAddr>) -> NodeId {
        let node = NodeId(self.addresses.len() as u16);
        self.addresses.push(addresses);
        node
    }

    /// Adds one direction of a link and returns its number.
    pub fn add_link(&mut self, name: impl Into<String>, from: NodeId, to: NodeId, spec: LinkSpec) -> LinkId {
        let link = LinkId(self.edges.len() as u16);
        self.edges.push(Edge { name: name.into(), from, to, spec });
        link
    }

    /// Returns the layout of a scenario's network.
    pub(crate) fn of(resolved: &Resolved) -> Layout {
        let links: Vec<_> =
            resolved.paths.iter().map(|path| (path.forward.clone(), path.backward.clone())).collect();
        let crossed: Vec<usize> = resolved.cross_traffic.iter().map(|cross| cross.path).collect();
        let shared: Vec<_> = resolved.paths.iter().map(|path| path.shares).collect();
        Topology::layout(&links, &shared, &resolved.access, &crossed)
    }

    /// Returns a layout of two hosts with paths between them. Each path is given by its (forward, backward) links. Each
    /// host has one address on each path: 10.0.*path*.1 the sender, 10.0.*path*.2 the receiver.
    ///
    /// `shared` has, for each path, the path whose links it uses in place of its own, if there is one. `crossed` has
    /// the path of each further pair of hosts, 10.1.*pair*.1 and 10.1.*pair*.2. A path that is shared or crossed
    /// becomes a dumbbell: all its hosts have access links like `access` to it, one each way.
    pub fn layout(
        paths: &[(LinkSpec, LinkSpec)],
        shared: &[Option<usize>],
        access: &LinkSpec,
        crossed: &[usize],
    ) -> Layout {
        let mut topology = Topology::default();
        let address = |path: usize, host: u8| IpAddr::V4(Ipv4Addr::new(10, 0, path as u8, host));
        let sender = topology.add_node((0..paths.len()).map(|path| address(path, 1)).collect());
        let receiver = topology.add_node((0..paths.len()).map(|path| address(path, 2)).collect());
        let pair_address = |pair: usize, host: u8| IpAddr::V4(Ipv4Addr::new(10, 1, pair as u8, host));
        let pairs: Vec<(NodeId, NodeId)> = (0..crossed.len())
            .map(|pair| [1, 2].map(|host| topology.add_node(vec![pair_address(pair, host)])).into())
            .collect();
        // The path whose links a path uses.
        let owner = |path: usize| shared.get(path).copied().flatten().unwrap_or(path);
        let mut links = vec![None; paths.len()];
        for (path, (forward, backward)) in paths.iter().enumerate().filter(|(path, _)| owner(*path) == *path)
        {
            let names = [format!("path {path} forward"), format!("path {path} backward")];
            let users: Vec<usize> = (0..paths.len()).filter(|user| owner(*user) == path).collect();
            let cross = pairs.iter().enumerate().filter(|(pair, _)| owner(crossed[*pair]) == path);
            if users.len() == 1 && cross.clone().next().is_none() {
                let there = topology.add_link(&names[0], sender, receiver, forward.clone());
                let back = topology.add_link(&names[1], receiver, sender, backward.clone());
                topology.routes.add(sender, address(path, 2), there);
                topology.routes.add(receiver, address(path, 1), back);
                let (forward, backward) = (there, back);
                links[path] =
                    Some(PathLinks { forward, backward, departs: there, arrives: there, returns: back });
                continue;
            }
            let routers = [0, 1].map(|_| topology.add_node(Vec::new()));
            let forward = topology.add_link(&names[0], routers[0], routers[1], forward.clone());
            let backward = topology.add_link(&names[1], routers[1], routers[0], backward.clone());
            let dumbbell = Dumbbell { routers, inner: [forward, backward], access };
            for user in users {
                let ends = [(sender, address(user, 1)), (receiver, address(user, 2))];
                let [(departs, returns), (_, arrives)] =
                    dumbbell.attach(&mut topology, &format!("path {user}"), ends);
                links[user] = Some(PathLinks { forward, backward, departs, arrives, returns });
            }
            for (pair, (left, right)) in cross {
                let ends = [(*left, pair_address(pair, 1)), (*right, pair_address(pair, 2))];
                dumbbell.attach(&mut topology, &format!("cross {pair}"), ends);
            }
        }
        // Every path has links of its own or shares another path's, so `flatten` drops none.
        Layout { topology, sender, receiver, paths: links.into_iter().flatten().collect(), pairs }
    }
}

/// Two routers with a link between them each way, to which pairs of hosts are attached.
struct Dumbbell<'a> {
    routers: [NodeId; 2],
    /// Links from the first router to the second, and back.
    inner: [LinkId; 2],
    access: &'a LinkSpec,
}

impl Dumbbell<'_> {
    /// Attaches a host with its address at each side. Returns the links of each host into the network and out of it.
    fn attach(
        &self,
        topology: &mut Topology,
        name: &str,
        ends: [(NodeId, IpAddr); 2],
    ) -> [(LinkId, LinkId); 2] {
        [0, 1].map(|side| {
            let (host, address) = ends[side];
            let (_, far) = ends[1 - side];
            let (near_router, far_router) = (self.routers[side], self.routers[1 - side]);
            let letter = ["left", "right"][side];
            let into =
                topology.add_link(format!("{name} {letter} in"), host, near_router, self.access.clone());
            let out =
                topology.add_link(format!("{name} {letter} out"), near_router, host, self.access.clone());
            topology.routes.add(host, far, into);
            topology.routes.add(near_router, address, out);
            topology.routes.add(far_router, address, self.inner[1 - side]);
            (into, out)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn spec() -> LinkSpec {
        LinkSpec::new(10_000_000, Duration::from_millis(10))
    }

    #[test]
    fn disjoint_paths_have_their_own_addresses_and_links() {
        let slow = LinkSpec { rate: 1_000_000, ..spec() };
        let layout = Topology::layout(&[(spec(), spec()), (slow, spec())], &[], &spec(), &[]);
        let topology = &layout.topology;
        assert_eq!(topology.addresses[0], [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 1, 1])]);
        let links = layout.paths[1];
        assert_eq!(topology.edges.len(), 4);
        assert_eq!((links.departs, links.returns), (links.forward, links.backward));
        assert_eq!(topology.edges[links.forward.index()].spec.rate, 1_000_000);
        assert_eq!(topology.routes.next(layout.sender, [10, 0, 1, 2].into()), Some(links.forward));
        assert_eq!(topology.routes.next(layout.receiver, [10, 0, 1, 1].into()), Some(links.backward));
        assert_eq!(topology.routes.next(layout.sender, [10, 0, 7, 2].into()), None);
    }

    /// Returns the links that a packet takes from `node` to `address`.
    fn way(topology: &Topology, mut node: NodeId, address: IpAddr) -> Vec<&str> {
        let mut way = Vec::new();
        while !topology.addresses[node.index()].contains(&address) {
            let link = topology.routes.next(node, address).expect("there is a way");
            way.push(topology.edges[link.index()].name.as_str());
            node = topology.edges[link.index()].to;
        }
        way
    }

    #[test]
    fn a_crossed_path_is_a_dumbbell() {
        let layout = Topology::layout(&[(spec(), spec()), (spec(), spec())], &[], &spec(), &[1, 1]);
        let topology = &layout.topology;
        assert_eq!(way(topology, layout.sender, [10, 0, 0, 2].into()), ["path 0 forward"]);
        assert_eq!(
            way(topology, layout.sender, [10, 0, 1, 2].into()),
            ["path 1 left in", "path 1 forward", "path 1 right out"]
        );
        let (left, right) = layout.pairs[1];
        assert_eq!(
            way(topology, left, [10, 1, 1, 2].into()),
            ["cross 1 left in", "path 1 forward", "cross 1 right out"]
        );
        assert_eq!(
            way(topology, right, [10, 1, 1, 1].into()),
            ["cross 1 right in", "path 1 backward", "cross 1 left out"]
        );
        let links = layout.paths[1];
        let name = |link: LinkId| topology.edges[link.index()].name.as_str();
        assert_eq!(
            [links.departs, links.arrives, links.returns].map(name),
            ["path 1 left in", "path 1 right out", "path 1 left out"]
        );
    }

    #[test]
    fn paths_that_share_links_have_addresses_and_access_of_their_own() {
        let paths = [(spec(), spec()), (spec(), spec()), (spec(), spec())];
        let layout = Topology::layout(&paths, &[None, None, Some(0)], &spec(), &[2]);
        let topology = &layout.topology;
        for path in [0, 2] {
            assert_eq!(
                way(topology, layout.sender, [10, 0, path, 2].into()),
                [format!("path {path} left in"), "path 0 forward".into(), format!("path {path} right out")]
            );
        }
        assert_eq!(way(topology, layout.receiver, [10, 0, 1, 1].into()), ["path 1 backward"]);
        let (left, _) = layout.pairs[0];
        assert_eq!(
            way(topology, left, [10, 1, 0, 2].into())[1],
            "path 0 forward",
            "it crosses what path 2 uses"
        );
        let [first, third] = [layout.paths[0], layout.paths[2]];
        assert_eq!((first.forward, first.backward), (third.forward, third.backward));
        assert_ne!((first.departs, first.arrives), (third.departs, third.arrives));
    }
}
