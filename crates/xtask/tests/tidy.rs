//! House rules as tests: what a reviewer would otherwise have to look for.

use std::fs;
use std::path::{Path, PathBuf};

use xtask::documents::DOCUMENTS;
use xtask::{codegen, tree};

const SOURCES: [&str; 4] = ["rs", "ts", "mjs", "md"];
const CODE: [&str; 3] = ["rs", "ts", "mjs"];
const LINES_MAX: usize = 600;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file with one of these endings, as a path from the checkout's folder with its text.
fn texts(folder: &str, endings: &[&str]) -> Vec<(String, String)> {
    let root = tree::root();
    let paths = tree::files(&root.join(folder), endings).unwrap_or_else(|error| panic!("{folder}: {error}"));
    assert!(!paths.is_empty(), "no {endings:?} under {folder}: the rule would check nothing");
    paths.into_iter().map(|path| (relative(&path, &root), read(&path))).collect()
}

fn relative(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).map_or_else(|_| PathBuf::from(path), PathBuf::from).display().to_string()
}

/// Fails with every place at once.
fn expect_none(rule: &str, found: &[String]) {
    assert!(found.is_empty(), "{rule}:\n  {}", found.join("\n  "));
}

/// `file:line` of each line for which `matches` holds.
fn lines_where(texts: &[(String, String)], matches: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in texts {
        for (number, line) in text.lines().enumerate() {
            if matches(line) {
                found.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    found
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|part| part == word)
}

#[test]
fn sources_are_ascii() {
    let mut texts = texts("", &SOURCES);
    // Payloads of tests may be any text.
    texts.retain(|(path, _)| !path.starts_with("__test__"));
    expect_none("not ASCII", &lines_where(&texts, |line| !line.is_ascii()));
}

#[test]
fn generated_files_are_what_codegen_writes() {
    codegen::check(&tree::root()).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn nothing_is_put_off_in_a_comment() {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    let found = lines_where(&texts("", &CODE), |line| words.iter().any(|word| has_word(line, word)));
    expect_none("an issue is the place for this", &found);
}

#[test]
fn files_are_named_by_what_they_hold() {
    let vague = ["util", "utils", "helper", "helpers", "common", "manager", "misc", "message"];
    let found: Vec<String> = texts("", &CODE)
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| !path.starts_with("__test__"))
        .filter(|path| {
            path.split('/').any(|part| part.split('.').next().is_some_and(|stem| vague.contains(&stem)))
        })
        .collect();
    expect_none("a name that says nothing", &found);
}

#[test]
fn files_stay_readable() {
    let found: Vec<String> = texts("", &CODE)
        .into_iter()
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(path, lines)| format!("{path}: {lines} lines"))
        .collect();
    expect_none("more than one concept in a file?", &found);
}

#[test]
fn the_core_knows_nothing_of_its_binding() {
    let found = lines_where(&texts("crates/millpond", &["rs", "toml"]), |line| {
        line.contains("napi") || has_word(line, "Node") || has_word(line, "libuv")
    });
    expect_none("an arrow that points up", &found);
}

#[test]
fn the_store_knows_nothing_of_queues() {
    let allowed = ["key", "store"];
    let found = lines_where(&texts("crates/millpond/src/store", &["rs"]), |line| {
        line.split("crate::").skip(1).any(|rest| {
            let module: String =
                rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            !allowed.contains(&module.as_str())
        })
    });
    expect_none("an arrow that points up", &found);
}

#[test]
fn every_block_of_a_document_names_its_language() {
    let mut found = Vec::new();
    for (path, text) in texts("", &["md"]) {
        let mut is_inside = false;
        for (number, line) in text.lines().enumerate() {
            let Some(language) = line.trim_start().strip_prefix("```") else { continue };
            if !is_inside && language.trim().is_empty() {
                found.push(format!("{path}:{}", number + 1));
            }
            is_inside = !is_inside;
        }
    }
    expect_none("a block without a language would be taken for Rust", &found);
}

#[test]
fn every_rust_snippet_of_a_document_is_compiled() {
    let found: Vec<String> = texts("", &["md"])
        .into_iter()
        .filter(|(path, text)| text.contains("```rust") && !DOCUMENTS.contains(&path.as_str()))
        .map(|(path, _)| path)
        .collect();
    expect_none("name it in crates/xtask/src/documents.rs", &found);
}

/// The tests that a document names, in backquotes: a path of modules, or a name that only a test has.
fn named_tests(text: &str) -> Vec<&str> {
    let is_path =
        |word: &str| word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ":_*".contains(c));
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|span| is_path(span) && (span.contains("::") || span.matches('_').count() > 2)).collect()
}

#[test]
fn tests_that_the_durability_table_names_exist() {
    let root = tree::root();
    let sources = texts("crates", &["rs"]);
    let text = read(&root.join("docs/durability.md"));
    let named = named_tests(&text);
    assert!(named.len() > 20, "the rule would check nothing");
    let exists = |test: &str| {
        let (place, name) = test.rsplit_once("::").unwrap_or(("", test));
        let first = place.split("::").next().unwrap_or_default();
        sources.iter().any(|(path, source)| {
            let is_there =
                path.trim_end_matches(".rs").split('/').any(|part| part == first) || first.is_empty();
            is_there
                && [format!("fn {name}("), format!("fn {name}<")].iter().any(|start| source.contains(start))
        })
    };
    let found: Vec<String> = named.into_iter().filter(|test| !exists(test)).map(str::to_owned).collect();
    expect_none("docs/durability.md names a test that is not there", &found);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let root = tree::root();
    let mut found = Vec::new();
    for (path, text) in texts("", &["md"]) {
        for target in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let folder = Path::new(&path).parent().unwrap_or(Path::new(""));
            if !target.is_empty() && !target.contains("://") && !root.join(folder).join(target).exists() {
                found.push(format!("{path}: {target}"));
            }
        }
    }
    expect_none("a link to nothing", &found);
}
