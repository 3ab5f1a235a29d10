//! Speed and memory over UDP on loopback: tresse with its defaults, and in turns with it plain UDP with segmentation
//! offload, quinn and usrsctp.
//!
//! `bench-sockets [TABLE...]` prints the tables asked for, or all. Each side of a measurement is a process of its own,
//! this program again with other arguments (`child`), so that its CPU time and memory are its alone.

mod child;
mod process;
mod stacks;
mod tables;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "child") {
        return child::run(&arguments[1..]);
    }
    for (name, table) in tables::TABLES {
        if arguments.is_empty() || arguments.iter().any(|word| word == name) {
            table()?;
        }
    }
    let unknown = arguments.iter().find(|word| tables::TABLES.iter().all(|(name, _)| name != word));
    match unknown {
        Some(word) => Err(format!("no table {word:?}; there are {}", tables::names()).into()),
        None => Ok(()),
    }
}
