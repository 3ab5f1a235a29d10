//! Settings of paths that change while the association runs.

use std::sync::Arc;

use tresse_policy::PathId;

use super::mtu::PathMtu;
use super::path::MtuRule;
use super::{PathRules, Paths};
use crate::config::AssociationConfig;
use crate::interface::adjustment::{PacketSize, PathAdjustment};

/// All paths go by `rules` from now on, those of `config`; what a path has of its own stays, but for what `change` names.
pub(crate) fn adjust(
    paths: &mut Paths,
    rules: &Arc<PathRules>,
    config: &AssociationConfig,
    change: &PathAdjustment,
) {
    paths.health.set_max_retrans(config.association_max_retrans);
    let bounds = rules.rto;
    let rebounds = paths.rules.rto != bounds;
    paths.rules = Arc::clone(rules);
    for position in 0..paths.len() {
        let id = PathId(position as u8);
        let path = paths.path_mut(id);
        if rebounds {
            path.rtt.rebound(&bounds);
        }
        if let Some(own) = &mut path.own_watch {
            own.adjust(change);
        }
        set_packet_size(paths, id, change.packet_size);
    }
}

/// Changes settings of one path.
pub(crate) fn adjust_one(paths: &mut Paths, id: PathId, change: &PathAdjustment) {
    let watch = paths.rules.watch;
    let own = paths.path_mut(id).own_watch.get_or_insert_with(|| Box::new(watch));
    own.adjust(change);
    set_packet_size(paths, id, change.packet_size);
}

fn set_packet_size(paths: &mut Paths, id: PathId, size: Option<PacketSize>) {
    let ceiling = match paths.rules.mtu {
        MtuRule::Given(mtu) | MtuRule::UpTo(mtu) => mtu,
    };
    let path = paths.path_mut(id);
    match size {
        Some(PacketSize::Fixed(size)) => path.mtu = PathMtu::given(size),
        Some(PacketSize::Discovered) if path.mtu.is_given() => {
            path.mtu = PathMtu::discovered(ceiling, path.headers_len(), path.remote.is_ipv6());
        }
        Some(PacketSize::Discovered) | None => return,
    }
    paths.refresh_payload(id);
}
