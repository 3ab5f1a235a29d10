use std::mem::offset_of;
use std::path::Path as File;
use std::process::Command;

use super::*;

/// Prints the sizes of structures and the offsets of fields, in the order of the header.
const PROGRAM: &str = r#"
#include <stdio.h>
#include "tresse_scheduler.h"
#define SIZE(type) printf("%zu\n", sizeof(struct type))
#define AT(type, field) printf("%zu\n", offsetof(struct type, field))
int main(void)
{
    SIZE(tresse_queued); AT(tresse_queued, at_ns); AT(tresse_queued, stream); AT(tresse_queued, was_idle);
    SIZE(tresse_taken); AT(tresse_taken, message_done); AT(tresse_taken, stream_empty);
    SIZE(tresse_removed); AT(tresse_removed, ahead); AT(tresse_removed, stream_empty);
    SIZE(tresse_path); AT(tresse_path, rate); AT(tresse_path, last_sent_ns); AT(tresse_path, loss);
    AT(tresse_path, mtu); AT(tresse_path, id); AT(tresse_path, recovering);
    SIZE(tresse_backlog); AT(tresse_backlog, messages); AT(tresse_backlog, head_bytes);
    SIZE(tresse_scheduler); AT(tresse_scheduler, name); AT(tresse_scheduler, create); AT(tresse_scheduler, next);
    AT(tresse_scheduler, is_empty); AT(tresse_scheduler, on_removed); AT(tresse_scheduler, set_value);
    AT(tresse_scheduler, value); AT(tresse_scheduler, failure);
    SIZE(tresse_candidate); AT(tresse_candidate, early); AT(tresse_candidate, open); AT(tresse_candidate, assignable);
    SIZE(tresse_offer); AT(tresse_offer, count); AT(tresse_offer, unsent); AT(tresse_offer, now_ns); AT(tresse_offer, buffer_limited); AT(tresse_offer, streams_bound);
    SIZE(tresse_path_scheduler); AT(tresse_path_scheduler, flags); AT(tresse_path_scheduler, create);
    AT(tresse_path_scheduler, pick); AT(tresse_path_scheduler, on_sent); AT(tresse_path_scheduler, failure);
    SIZE(tresse_window); AT(tresse_window, packet); AT(tresse_window, srtt_ns); AT(tresse_window, min_rtt_ns); AT(tresse_window, recovering);
    SIZE(tresse_situation); AT(tresse_situation, count); AT(tresse_situation, path);
    SIZE(tresse_ack); AT(tresse_ack, flight_after); AT(tresse_ack, rate); AT(tresse_ack, fully_used);
    SIZE(tresse_sizes); AT(tresse_sizes, ssthresh);
    SIZE(tresse_congestion_controller); AT(tresse_congestion_controller, create);
    AT(tresse_congestion_controller, on_ack); AT(tresse_congestion_controller, on_idle);
    AT(tresse_congestion_controller, on_path_added); AT(tresse_congestion_controller, pacing_rate);
    AT(tresse_congestion_controller, failure);
    printf("%u\n%d\n%d\n%d\n", TRESSE_SCHEDULER_ABI, TRESSE_SCHEDULER_NAME_SIZE, TRESSE_NO_STREAM, TRESSE_FAILED);
    printf("%d\n%u\n%u\n", TRESSE_NO_PATH, TRESSE_ASSIGNS, TRESSE_COPIES);
    printf("%d\n%d\n", TRESSE_PATH_UNCONFIRMED, TRESSE_PATH_ACTIVE);
    printf("%d\n%d\n", TRESSE_PATH_POTENTIALLY_FAILED, TRESSE_PATH_INACTIVE);
    return 0;
}
"#;

fn in_rust() -> Vec<i64> {
    let layout = [
        [
            size_of::<Queued>(),
            offset_of!(Queued, at_ns),
            offset_of!(Queued, stream),
            offset_of!(Queued, was_idle),
        ]
        .as_slice(),
        &[size_of::<Taken>(), offset_of!(Taken, message_done), offset_of!(Taken, stream_empty)],
        &[size_of::<Removed>(), offset_of!(Removed, ahead), offset_of!(Removed, stream_empty)],
        &[size_of::<Path>(), offset_of!(Path, rate), offset_of!(Path, last_sent_ns), offset_of!(Path, loss)],
        &[offset_of!(Path, mtu), offset_of!(Path, id), offset_of!(Path, recovering)],
        &[size_of::<Backlog>(), offset_of!(Backlog, messages), offset_of!(Backlog, head_bytes)],
        &[size_of::<StreamTable>(), offset_of!(StreamTable, name), offset_of!(StreamTable, create)],
        &[offset_of!(StreamTable, next), offset_of!(StreamTable, is_empty)],
        &[offset_of!(StreamTable, on_removed), offset_of!(StreamTable, set_value)],
        &[offset_of!(StreamTable, value), offset_of!(StreamTable, failure)],
        &[size_of::<Candidate>(), offset_of!(Candidate, early)],
        &[offset_of!(Candidate, open), offset_of!(Candidate, assignable)],
        &[size_of::<Offer>(), offset_of!(Offer, count), offset_of!(Offer, unsent), offset_of!(Offer, now_ns)],
        &[offset_of!(Offer, buffer_limited), offset_of!(Offer, streams_bound)],
        &[size_of::<PathTable>(), offset_of!(PathTable, flags), offset_of!(PathTable, create)],
        &[offset_of!(PathTable, pick), offset_of!(PathTable, on_sent), offset_of!(PathTable, failure)],
        &[size_of::<Window>(), offset_of!(Window, packet), offset_of!(Window, srtt_ns)],
        &[offset_of!(Window, min_rtt_ns), offset_of!(Window, recovering)],
        &[size_of::<Situation>(), offset_of!(Situation, count), offset_of!(Situation, path)],
        &[
            size_of::<Ack>(),
            offset_of!(Ack, flight_after),
            offset_of!(Ack, rate),
            offset_of!(Ack, fully_used),
        ],
        &[size_of::<Sizes>(), offset_of!(Sizes, ssthresh)],
        &[size_of::<ControllerTable>(), offset_of!(ControllerTable, create)],
        &[offset_of!(ControllerTable, on_ack), offset_of!(ControllerTable, on_idle)],
        &[offset_of!(ControllerTable, on_path_added), offset_of!(ControllerTable, pacing_rate)],
        &[offset_of!(ControllerTable, failure)],
    ];
    let constants = [i64::from(ABI), NAME_SIZE as i64, NONE.into(), FAILED.into()];
    let constants = constants.into_iter().chain([NONE.into(), ASSIGNS.into(), COPIES.into()]);
    let states = [UNCONFIRMED, ACTIVE, POTENTIALLY_FAILED, INACTIVE].map(i64::from);
    layout.concat().into_iter().map(|number| number as i64).chain(constants).chain(states).collect()
}

#[test]
fn the_header_and_its_rust_form_agree() {
    let root = File::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::temp_dir().join(format!("tresse-plugin-abi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the program");
    let (source, program) = (folder.join("layout.c"), folder.join("layout"));
    std::fs::write(&source, PROGRAM).expect("the source can be written");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let compiled = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Werror", "-std=c11", "-I"])
        .arg(root.join("include"))
        .arg("-o")
        .args([&program, &source])
        .status();
    assert!(compiled.expect("a C compiler").success());
    let output = Command::new(&program).output().expect("it runs");
    std::fs::remove_dir_all(&folder).ok();
    let printed = String::from_utf8(output.stdout).expect("numbers");
    let in_c: Vec<i64> = printed.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(in_c, in_rust());
}
