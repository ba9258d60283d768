//! The page of a type alias shows no method of its own: it says where the methods are.

use super::{files, read};

/// The doc comment above each public alias of a generic type, with the names of the alias and of the type.
fn aliases(source: &str) -> Vec<(String, String, String)> {
    let (mut found, mut doc) = (Vec::new(), String::new());
    for line in source.lines() {
        match line.strip_prefix("pub type ").and_then(|rest| rest.rsplit_once(" = ")) {
            Some((name, of)) if of.contains('<') => {
                let plain = |text: &str| text.split(['<', ';']).next().unwrap_or_default().to_owned();
                let of = plain(of).rsplit("::").next().unwrap_or_default().to_owned();
                found.push((plain(name), of, std::mem::take(&mut doc)));
            }
            _ if line.starts_with("///") => doc = format!("{doc}{line}\n"),
            _ => doc.clear(),
        }
    }
    found
}

#[test]
fn the_page_of_an_alias_says_where_its_methods_are() {
    let mut seen = 0;
    for file in ["recipes/src", "redis/src"].into_iter().flat_map(|folder| files(folder, &[".rs"])) {
        for (name, of, doc) in aliases(&read(&file)) {
            let (_, methods) =
                doc.split_once("# Methods").unwrap_or_else(|| panic!("{file}: {name} has no `# Methods`"));
            assert!(methods.contains(&format!("`{of}`")), "{file}: the page of {name} does not name {of}");
            seen += 1;
        }
    }
    assert!(seen >= 40, "{seen}");
}

#[test]
fn aliases_of_generic_types_are_found() {
    let source =
        "/// A.\npub type A<T = ()> = View<One, T>;\npub type B = Vec;\n\npub type C = x::Guard<()>;\n";
    let found: Vec<_> = aliases(source).into_iter().map(|(name, of, doc)| (name, of, doc.len())).collect();
    assert_eq!(found, [("A".to_owned(), "View".to_owned(), 7), ("C".to_owned(), "Guard".to_owned(), 0)]);
}
