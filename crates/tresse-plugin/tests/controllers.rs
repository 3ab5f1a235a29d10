//! Shared objects with congestion controllers: compiled here, loaded, used in simulated associations, and unloaded again.

mod common;

#[path = "../../../examples/controllers/scalable.rs"]
#[expect(unreachable_pub, reason = "it is written as an application would have it")]
mod scalable;

use std::path::PathBuf;

use tresse_plugin::{Factory, Plugin};
use tresse_policy::congestion::{ControllerFactory, PathWindow};
use tresse_policy::{PathId, Registry, ScheduleError};
use tresse_sim::{Outcome, RunOptions};

use common::{compile, is_loaded, run};

fn fixture(name: &str, flags: &[&str]) -> PathBuf {
    compile("crates/tresse-plugin/tests/controllers/fixture.c", name, flags)
}

fn simulate(controller: &str, controllers: &[(String, ControllerFactory)]) -> Outcome {
    let options = RunOptions { controllers, ..RunOptions::default() };
    run(&format!("congestion_control = \"{controller}\""), options)
}

fn factory(plugin: &Plugin) -> ControllerFactory {
    let Factory::Controller(factory) = plugin.factory() else { panic!("a scheduler") };
    factory
}

/// The fixture, loaded under its name.
fn named(name: &str, flags: &[&str]) -> Vec<(String, ControllerFactory)> {
    let plugin = Plugin::load(fixture(name, flags)).expect(name);
    vec![(plugin.name().to_owned(), factory(&plugin))]
}

#[test]
fn the_same_controller_in_c_and_in_rust_sends_the_same_packets() {
    let strict = ["-Wall", "-Wextra", "-Werror"];
    let object = compile("examples/controllers/scalable.c", "scalable", &strict);
    let plugin = Plugin::load(object).expect("sound");
    assert_eq!(plugin.name(), "scalable");
    let in_c = simulate("scalable", &[("scalable".to_owned(), factory(&plugin))]);
    let in_rust = simulate("scalable", &[("scalable".to_owned(), scalable::factory())]);
    assert_eq!(in_c.run.trace_hash, in_rust.run.trace_hash);
    assert!(in_c.completed_s.is_some(), "everything arrives");
    assert_eq!(in_c.association.scheduler_failures, [""; 0]);
    let other = simulate("rfc9260", &[]);
    assert_ne!(in_c.run.trace_hash, other.run.trace_hash, "and it is a controller of its own");
}

#[test]
fn what_a_controller_is_shown_agrees_with_what_it_was_told() {
    let outcome = simulate("controller_fixture", &named("controller_sound", &[]));
    assert!(outcome.completed_s.is_some(), "everything arrives, checked by the simulator");
    assert_eq!(outcome.association.scheduler_failures, [""; 0]);
}

#[test]
fn what_is_wrong_with_a_controller_is_said_in_one_line() {
    let cases: [(&str, &[&str], &str); 4] = [
        (
            "controller_version",
            &["-DABI=2"],
            "its table is for version 2 of the interface, and this program speaks 3: build it again",
        ),
        ("controller_short", &["-DSIZE=8"], "its table has 8 bytes and not "),
        ("lossless", &["-DNO_ON_LOSS"], "its table has no \"on_loss\""),
        ("controller_nameless", &["-DNAME=\"\""], "its name is not one: a to z, digits and underscores"),
    ];
    for (name, flags, expected) in cases {
        let object = fixture(name, flags);
        let said = Plugin::load(&object).map(|_| ()).expect_err(name).to_string();
        assert!(said.starts_with(&format!("{}: {expected}", object.display())), "{said}");
        assert!(!said.contains('\n'), "{said}");
    }
    let refused = factory(&Plugin::load(fixture("controller_choosy", &[])).expect("sound"))("loud");
    assert_eq!(refused.map(|_| ()), Err("\"loud\": no configuration is accepted".to_owned()));
}

#[test]
fn a_controller_that_misbehaves_is_replaced_and_nothing_is_lost() {
    let cases: [(&str, &[&str], &str); 5] = [
        ("controller_closed", &["-DCWND=0"], "it set the window of path "),
        ("controller_endless", &["-DCWND=UINT64_MAX"], "it set the window of path "),
        ("controller_low", &["-DSSTHRESH=1"], "it set the slow-start threshold of path "),
        ("controller_absurd", &["-DANSWER=7"], "it answered 7, and 0 or TRESSE_FAILED are accepted"),
        ("controller_tired", &["-DANSWER=-2", "-DREASON=\"no more\\nideas\""], "no more ideas"),
    ];
    for (name, flags, fault) in cases {
        let outcome = simulate("controller_fixture", &named(name, flags));
        assert!(outcome.completed_s.is_some(), "{name}: everything arrives, checked by the simulator");
        let [told] = outcome.association.scheduler_failures.as_slice() else { panic!("{name}: told once") };
        assert!(
            told.starts_with(&format!("congestion controller controller_fixture: {fault}")),
            "{name}: {told}"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_object_is_not_pulled_away_from_a_controller() {
    let object = fixture("controller_leaving", &[]);
    let plugin = Plugin::load(&object).expect("sound");
    let mut registry = Registry::default();
    registry.register_controller(plugin.name(), factory(&plugin)).expect("a new name");
    let mut user = factory(&plugin)("").expect("no configuration");
    drop((plugin, registry));
    assert!(is_loaded(&object));
    let mut window = PathWindow::new(PathId(0), 4_000, 1_400);
    window.ssthresh = 4_000;
    user.on_path_added(&window);
    assert_eq!(user.failure(), None);
    drop(user);
    assert!(!is_loaded(&object), "nobody is left");
}

#[test]
fn a_controller_sets_the_pace_of_a_path() {
    let plugin = Plugin::load(fixture("controller_pacing", &["-DPACE=125000"])).expect("sound");
    let mut controller = factory(&plugin)("").expect("no configuration");
    assert_eq!(controller.pacing_rate(PathId(0)).map(u64::from), Some(125_000));
    assert_eq!(controller.pacing_rate(PathId(1)), None, "0 is none");
}

#[test]
fn a_controller_does_not_stand_in_for_a_scheduler() {
    let mut registry = Registry::default();
    let plugin = Plugin::load(fixture("controller_elsewhere", &[])).expect("sound");
    registry.register_controller(plugin.name(), factory(&plugin)).expect("a new name");
    let refused = registry.build_path_scheduler(plugin.name(), "").map(|_| ());
    assert!(matches!(refused, Err(ScheduleError::Unknown { .. })));
}
