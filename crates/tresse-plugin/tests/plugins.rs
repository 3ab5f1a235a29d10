//! Shared objects with schedulers: compiled here, loaded, used in simulated associations, and unloaded again.

mod common;

#[path = "../../../examples/schedulers/cleanest.rs"]
#[expect(unreachable_pub, reason = "it is written as an application would have it")]
mod cleanest;
#[path = "../../../examples/schedulers/one_by_one.rs"]
#[expect(unreachable_pub, reason = "it is written as an application would have it")]
mod one_by_one;

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tresse_plugin::{Factory, Plugin};
use tresse_policy::schedule::{PathSchedulerFactory, StreamSchedulerFactory};
use tresse_policy::{PathId, Registry, ScheduleError, StreamId};
use tresse_sim::{Outcome, RunOptions};

use common::{ROOT, compile, is_loaded, run};

/// The example, compiled once: its file is not replaced while another test uses it.
fn example() -> PathBuf {
    static OBJECT: OnceLock<PathBuf> = OnceLock::new();
    let strict = ["-Wall", "-Wextra", "-Werror"];
    OBJECT.get_or_init(|| compile("examples/schedulers/one_by_one.c", "one_by_one", &strict)).clone()
}

fn fixture(name: &str, flags: &[&str]) -> PathBuf {
    compile("crates/tresse-plugin/tests/schedulers/fixture.c", name, flags)
}

fn path_fixture(name: &str, flags: &[&str]) -> PathBuf {
    compile("crates/tresse-plugin/tests/schedulers/path_fixture.c", name, flags)
}

fn simulate(scheduler: &str, schedulers: &[(String, StreamSchedulerFactory)]) -> Outcome {
    let options = RunOptions { schedulers, ..RunOptions::default() };
    run(&format!("stream_scheduler = \"{scheduler}\""), options)
}

fn simulate_paths(scheduler: &str, path_schedulers: &[(String, PathSchedulerFactory)]) -> Outcome {
    let options = RunOptions { path_schedulers, ..RunOptions::default() };
    run(&format!("path_scheduler = \"{scheduler}\""), options)
}

fn named(plugin: &Plugin) -> Vec<(String, StreamSchedulerFactory)> {
    vec![(plugin.name().to_owned(), of_streams(plugin))]
}

fn of_streams(plugin: &Plugin) -> StreamSchedulerFactory {
    let Factory::Stream(factory) = plugin.factory() else { panic!("a scheduler of paths") };
    factory
}

fn of_paths(plugin: &Plugin) -> PathSchedulerFactory {
    let Factory::Path(factory) = plugin.factory() else { panic!("a scheduler of streams") };
    factory
}

/// The fixture of path schedulers, loaded under its name.
fn named_path(name: &str, flags: &[&str]) -> Vec<(String, PathSchedulerFactory)> {
    let plugin = Plugin::load(path_fixture(name, flags)).expect(name);
    vec![(plugin.name().to_owned(), of_paths(&plugin))]
}

#[test]
fn the_same_policy_in_c_and_in_rust_sends_the_same_packets() {
    let plugin = Plugin::load(example()).expect("the worked example");
    assert_eq!(plugin.name(), "one_by_one");
    let in_c = simulate("one_by_one", &named(&plugin));
    let in_rust = simulate("one_by_one", &[("one_by_one".to_owned(), one_by_one::factory())]);
    assert_eq!(in_c.run.trace_hash, in_rust.run.trace_hash);
    assert!(in_c.completed_s.is_some(), "everything arrives");
    assert_eq!(in_c.association.scheduler_failures, [""; 0]);
    assert_ne!(
        in_c.run.trace_hash,
        simulate("first_come", &[]).run.trace_hash,
        "and it is a policy of its own"
    );
}

#[test]
fn what_is_wrong_with_an_object_is_said_in_one_line() {
    let size = size_of_table();
    let cases: [(&str, &[&str], String); 7] = [
        (
            "version",
            &["-DABI=7"],
            "its table is for version 7 of the interface, and this program speaks 3: build it again"
                .to_owned(),
        ),
        (
            "short",
            &["-DSIZE=40"],
            format!("its table has 40 bytes and not {size}: build it again with this program's header"),
        ),
        (
            "nameless",
            &["-DNAME=\"\""],
            "its name is not one: a to z, digits and underscores are accepted, at most 31 of them and a zero"
                .to_owned(),
        ),
        (
            "shouting",
            &["-DNAME=\"Loud!\""],
            "its name is not one: a to z, digits and underscores are accepted, at most 31 of them and a zero"
                .to_owned(),
        ),
        ("hookless", &["-DNO_NEXT"], "its table has no \"next\"".to_owned()),
        ("barren", &["-DNO_CREATE"], "its table has no \"create\"".to_owned()),
        (
            "misnamed",
            &["-DNAMED=scheduler"],
            "it exports no \"tresse_scheduler\", \"tresse_path_scheduler\" or \"tresse_congestion_controller\": a \
             table as in include/tresse_scheduler.h is expected"
                .to_owned(),
        ),
    ];
    for (name, flags, expected) in cases {
        let object = fixture(name, flags);
        let error = Plugin::load(&object).map(|_| ()).expect_err(name);
        assert_eq!(error.to_string(), format!("{}: {expected}", object.display()));
    }
    let source = Path::new(ROOT).join("examples/schedulers/one_by_one.c");
    for file in [source, PathBuf::from("/nowhere/at/all.so"), PathBuf::from("libm.so.6")] {
        let said = Plugin::load(&file).map(|_| ()).expect_err("no object").to_string();
        assert!(said.contains(": it cannot be loaded: ") && !said.contains('\n'), "{said}");
        assert!(!said.contains("dlopen"), "the system's reason, not which call failed: {said}");
    }
}

/// What the error for a wrong size says that a table has.
fn size_of_table() -> usize {
    let error = Plugin::load(fixture("empty", &["-DSIZE=0"])).map(|_| ()).expect_err("no size").to_string();
    let number = error.split("not ").nth(1).and_then(|rest| rest.split(':').next());
    number.and_then(|number| number.parse().ok()).expect("a size")
}

#[test]
fn configurations_and_values_are_the_objects_own() {
    let plugin = Plugin::load(fixture("values", &[])).expect("sound");
    let mut registry = Registry::default();
    registry.register_stream_scheduler("mine", of_streams(&plugin)).expect("any free name will do");
    let refused = |config: &str| {
        registry.build_stream_scheduler("mine", config).map(|_| ()).map_err(|error| error.to_string())
    };
    let said = |reason: &str| Err(format!("stream scheduler \"mine\" refused its configuration: {reason}"));
    assert_eq!(refused("loud"), said("\"loud\" is not \"silent\""), "on one line");
    assert_eq!(refused("silent"), said("it does not say why"));
    assert_eq!(refused("a\0b"), said("a configuration has no zero byte for C to end it at"));
    let mut built = registry.build_stream_scheduler("mine", "").expect("no configuration");
    assert!(built.is_empty());
    assert_eq!((built.set_value(StreamId(3), 5), built.value(StreamId(3))), (Ok(()), Some(5)));
    assert_eq!(built.set_value(StreamId(3), 10), Err("it refuses with code 22".to_owned()));
    assert_eq!(built.value(StreamId(3)), Some(5));
}

#[test]
fn an_object_that_misbehaves_harms_nobody_else_and_nothing_is_lost() {
    let cases: [(&str, &[&str], &str); 5] = [
        ("sound", &[], ""),
        ("silent", &["-DANSWER=-1"], "it named no stream although data waits and every path could take it"),
        ("absurd", &["-DANSWER=70000"], "it answered 70000, which is no stream"),
        ("stray", &["-DANSWER=63"], "it named stream 63, which has nothing to send"),
        ("tired", &["-DANSWER=-2", "-DREASON=\"no more\\nideas\""], "no more ideas"),
    ];
    for (name, flags, fault) in cases {
        let plugin = Plugin::load(fixture(name, flags)).expect(name);
        let outcome = simulate("fixture", &named(&plugin));
        assert!(outcome.completed_s.is_some(), "{name}: everything arrives, checked by the simulator");
        let expected: Vec<String> = Some(format!("stream scheduler fixture: {fault}"))
            .filter(|_| !fault.is_empty())
            .into_iter()
            .collect();
        assert_eq!(outcome.association.scheduler_failures, expected);
    }
    let wordless = Plugin::load(fixture("wordless", &["-DANSWER=-2"])).expect("sound");
    let outcome = simulate("fixture", &named(&wordless));
    let expected = ["stream scheduler fixture: it says that it cannot go on, and not why"];
    assert_eq!(outcome.association.scheduler_failures, expected);
}

#[test]
#[cfg(target_os = "linux")]
fn an_object_is_not_pulled_away_from_its_users_and_goes_after_the_last() {
    let object = fixture("leaving", &["-DNAME=\"leaving\""]);
    assert!(!is_loaded(&object));
    let mut registry = Registry::default();
    let plugin = Plugin::load(&object).expect("sound");
    registry.register_stream_scheduler(plugin.name(), of_streams(&plugin)).expect("a new name");
    drop(plugin);
    let mut user = registry.build_stream_scheduler("leaving", "").expect("registered");
    assert_eq!(registry.remove_stream_scheduler("leaving"), Err(ScheduleError::InUse("leaving".to_owned())));
    // Even without the registry, a scheduler keeps its code.
    let mut other = Registry::default();
    std::mem::swap(&mut other, &mut registry);
    drop(other);
    assert!(is_loaded(&object));
    assert_eq!(user.set_value(StreamId(0), 4), Ok(()));
    drop(user);
    assert!(!is_loaded(&object), "nobody is left");

    // Another build of it, in place of the first while the program runs.
    std::fs::remove_file(&object).expect("it can be replaced");
    let object = fixture("leaving", &["-DNAME=\"leaving\"", "-DANSWER=-2", "-DREASON=\"newer\""]);
    let plugin = Plugin::load(&object).expect("sound");
    let outcome = simulate("leaving", &named(&plugin));
    assert_eq!(outcome.association.scheduler_failures, ["stream scheduler leaving: newer"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_new_build_is_refused_while_the_old_one_of_its_path_is_in_use() {
    let object = fixture("rebuilt", &["-DNAME=\"older\""]);
    let older = Plugin::load(&object).expect("sound");
    // Not written over: the code of `older` stays as it is.
    std::fs::remove_file(&object).expect("it was compiled");
    let object = fixture("rebuilt", &["-DNAME=\"newer\""]);
    let refused = Plugin::load(&object).expect_err("the loader would return the older code").to_string();
    let reason = "older code of this path is still in use: give the new file another name, or remove the older policy first";
    assert_eq!(refused, format!("{}: {reason}", object.display()));
    let elsewhere = object.with_file_name("rebuilt_elsewhere.so");
    std::fs::copy(&object, &elsewhere).expect("it was compiled");
    assert_eq!(Plugin::load(&elsewhere).expect("sound").name(), "newer");
    assert_eq!(older.name(), "older");
    drop(older);
    assert_eq!(Plugin::load(&object).expect("sound").name(), "newer");
}

#[test]
fn the_same_path_policy_in_c_and_in_rust_sends_the_same_packets() {
    let strict = ["-Wall", "-Wextra", "-Werror"];
    let plugin = Plugin::load(compile("examples/schedulers/cleanest.c", "cleanest", &strict)).expect("sound");
    assert_eq!(plugin.name(), "cleanest");
    let in_c = simulate_paths("cleanest", &[("cleanest".to_owned(), of_paths(&plugin))]);
    let in_rust = simulate_paths("cleanest", &[("cleanest".to_owned(), cleanest::factory())]);
    assert_eq!(in_c.run.trace_hash, in_rust.run.trace_hash);
    assert!(in_c.completed_s.is_some(), "everything arrives");
    assert_eq!(in_c.association.scheduler_failures, [""; 0]);
    let other = simulate_paths("lowest_rtt", &[]);
    assert_ne!(in_c.run.trace_hash, other.run.trace_hash, "and it is a policy of its own");
}

#[test]
fn path_schedulers_that_leave_data_or_copy_it_say_so_in_their_table() {
    let plain = simulate_paths("path_fixture", &named_path("plain", &[]));
    let assigning = simulate_paths("path_fixture", &named_path("assigning", &["-DFLAGS=TRESSE_ASSIGNS"]));
    let copying = simulate_paths("path_fixture", &named_path("copying", &["-DFLAGS=TRESSE_COPIES"]));
    for outcome in [&plain, &assigning, &copying] {
        assert!(outcome.completed_s.is_some(), "everything arrives, checked by the simulator");
        assert_eq!(outcome.association.scheduler_failures, [""; 0]);
    }
    assert_ne!(plain.run.trace_hash, assigning.run.trace_hash, "it leaves data to a path that is full");
    assert_ne!(plain.run.trace_hash, copying.run.trace_hash, "it sends all data twice");
}

#[test]
fn what_is_wrong_with_a_path_scheduler_is_said_in_one_line() {
    let cases: [(&str, &[&str], &str); 5] = [
        (
            "path_version",
            &["-DABI=2"],
            "its table is for version 2 of the interface, and this program speaks 3: build it again",
        ),
        ("path_short", &["-DSIZE=8"], "its table has 8 bytes and not "),
        (
            "path_flags",
            &["-DFLAGS=6"],
            "its flags are 0x6, and TRESSE_ASSIGNS and TRESSE_COPIES are all that there are",
        ),
        ("pickless", &["-DNO_PICK"], "its table has no \"pick\""),
        (
            "both",
            &["-DBOTH"],
            "it exports more than one of \"tresse_scheduler\", \"tresse_path_scheduler\" and \
             \"tresse_congestion_controller\": one is expected",
        ),
    ];
    for (name, flags, expected) in cases {
        let object = path_fixture(name, flags);
        let said = Plugin::load(&object).map(|_| ()).expect_err(name).to_string();
        assert!(said.starts_with(&format!("{}: {expected}", object.display())), "{said}");
        assert!(!said.contains('\n'), "{said}");
    }
    let (mut registry, plugin) =
        (Registry::default(), Plugin::load(path_fixture("choosy", &[])).expect("sound"));
    registry.register_path_scheduler(plugin.name(), of_paths(&plugin)).expect("a new name");
    let refused =
        registry.build_path_scheduler("path_fixture", "loud").map(|_| ()).expect_err("not accepted");
    let expected =
        "path scheduler \"path_fixture\" refused its configuration: \"loud\": no configuration is accepted";
    assert_eq!(refused.to_string(), expected);
}

#[test]
fn a_path_scheduler_that_misbehaves_is_replaced_and_nothing_is_lost() {
    let cases: [(&str, &[&str], &str); 4] = [
        ("path_absurd", &["-DANSWER=256"], "it answered 256, which is no path"),
        ("path_stray", &["-DANSWER=7"], "it named path 7, which can take no data now"),
        ("path_tired", &["-DANSWER=-2", "-DREASON=\"no more\\nideas\""], "no more ideas"),
        ("path_wordless", &["-DANSWER=-2"], "it says that it cannot go on, and not why"),
    ];
    for (name, flags, fault) in cases {
        let outcome = simulate_paths("path_fixture", &named_path(name, flags));
        assert!(outcome.completed_s.is_some(), "{name}: everything arrives, checked by the simulator");
        assert_eq!(outcome.association.scheduler_failures, [format!("path scheduler path_fixture: {fault}")]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_object_is_not_pulled_away_from_a_path_scheduler() {
    let object = path_fixture("path_leaving", &[]);
    let plugin = Plugin::load(&object).expect("sound");
    let mut registry = Registry::default();
    registry.register_path_scheduler(plugin.name(), of_paths(&plugin)).expect("a new name");
    drop(plugin);
    let mut user = registry.build_path_scheduler("path_fixture", "").expect("registered");
    assert_eq!(
        registry.remove_path_scheduler("path_fixture"),
        Err(ScheduleError::InUse("path_fixture".to_owned()))
    );
    drop(registry);
    assert!(is_loaded(&object));
    user.on_sent(PathId(0), 100);
    assert_eq!(user.failure(), None);
    drop(user);
    assert!(!is_loaded(&object), "nobody is left");
}

/// The table that a shared object exports, where the object is loaded by the test itself.
struct InMemory {
    library: libloading::Library,
}

impl InMemory {
    fn open(path: PathBuf) -> Self {
        // SAFETY: the fixtures have no initialisers.
        InMemory { library: unsafe { libloading::Library::new(path) }.expect("a shared object") }
    }

    fn plugin(&self, unused: impl FnOnce() + Send + Sync + 'static) -> Plugin {
        // SAFETY: the symbol is only used as an address.
        let table = unsafe { self.library.get::<*const c_void>(b"tresse_scheduler\0") }.expect("a table");
        // SAFETY: the table is one of the header, and the library is there until the test ends.
        unsafe { Plugin::of_table(*table, unused) }.expect("a sound table")
    }
}

#[test]
fn a_table_in_memory_is_as_good_as_that_of_an_object_and_tells_when_it_is_not_used() {
    let in_memory = InMemory::open(example());
    let unused = Arc::new(AtomicBool::new(false));
    let plugin = in_memory.plugin({
        let unused = Arc::clone(&unused);
        move || unused.store(true, Ordering::Relaxed)
    });
    let of_table = simulate("one_by_one", &named(&plugin));
    let of_object = simulate("one_by_one", &named(&Plugin::load(example()).expect("the worked example")));
    assert_eq!(of_table.run.trace_hash, of_object.run.trace_hash);

    let mut registry = Registry::default();
    registry.register_stream_scheduler(plugin.name(), of_streams(&plugin)).expect("a free name");
    drop(plugin);
    let scheduler = registry.build_stream_scheduler("one_by_one", "").expect("registered");
    assert!(matches!(registry.remove_stream_scheduler("one_by_one"), Err(ScheduleError::InUse(_))));
    drop(scheduler);
    assert!(!unused.load(Ordering::Relaxed), "it is registered still");
    registry.remove_stream_scheduler("one_by_one").expect("nobody uses it");
    assert!(unused.load(Ordering::Relaxed));
}

#[test]
fn a_table_in_memory_that_is_none_is_refused_and_not_called_unused() {
    let called = |table: *const c_void| {
        // SAFETY: the table is null, or has the two fields that say that it is none.
        let refused = unsafe { Plugin::of_table(table, || panic!("it was never used")) };
        refused.expect_err("no table").to_string()
    };
    let head = [99_u32, 8];
    assert!(called(std::ptr::null()).starts_with("a table in memory: "));
    assert!(called(head.as_ptr().cast()).contains("version 99"));
}
