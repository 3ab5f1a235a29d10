//! Overrides: changes of a document by dotted paths, as on command lines.

use toml::{Table, Value};

use super::error::ScenarioError;

/// Sets `key` of the document to `value`. Missing tables on the way are created; missing items of arrays are not.
pub(super) fn apply(file: &str, document: &mut Table, key: &str, value: &str) -> Result<(), ScenarioError> {
    let refuse =
        |reason: String| ScenarioError::Inconsistent { file: file.to_owned(), key: key.to_owned(), reason };
    // Errors print path[1].rate, so this form is accepted too.
    let dotted = key.replace('[', ".").replace(']', "");
    let (way, last) = dotted.rsplit_once('.').unwrap_or(("", &dotted));
    if last.is_empty() {
        return Err(refuse("is no key: write key=value, such as path.1.delay=75ms".to_owned()));
    }
    if way.split('.').count() > DEEPEST {
        return Err(refuse(
            "has more steps than any key: write key=value, such as path.1.delay=75ms".to_owned(),
        ));
    }
    let mut table = document;
    let mut steps = way.split('.').filter(|step| !step.is_empty());
    while let Some(step) = steps.next() {
        let inner = table.entry(step).or_insert_with(|| Value::Table(Table::new()));
        table = match inner {
            // An empty table was created just now, and positions belong to arrays only.
            Value::Table(inner) if inner.is_empty() && is_position(steps.clone().next().unwrap_or(last)) => {
                return Err(refuse(format!("the scenario has no {step} there")));
            }
            Value::Table(inner) => inner,
            Value::Array(items) => {
                let count = items.len();
                let named = steps.next();
                if named.is_none() && last.parse::<usize>().is_ok_and(|position| position < count) {
                    return Err(refuse("is a table: add one of its keys".to_owned()));
                }
                let position = named.and_then(|step| step.parse::<usize>().ok());
                match position.and_then(|position| items.get_mut(position)) {
                    Some(Value::Table(inner)) => inner,
                    _ if count == 0 => return Err(refuse(format!("the scenario has no {step} there"))),
                    _ => {
                        let last = count - 1;
                        return Err(refuse(format!("the scenario has {step}.0 to {step}.{last}")));
                    }
                }
            }
            _ => return Err(refuse(format!("{step} is a single value"))),
        };
    }
    table.insert(last.to_owned(), Value::String(value.to_owned()));
    Ok(())
}

fn is_position(step: &str) -> bool {
    step.parse::<usize>().is_ok()
}

/// Most tables on the way to a key. No key has more, and code that descends by recursion does not overflow its stack.
const DEEPEST: usize = 16;
