//! What the questions of the libraries reach: no request, no end of a hold or of a session.
//!
//! Read from the sources by the names of functions, so by less than a compiler knows. `self.name()` and
//! `Type::name()` are calls of the function of that type, if it has one; `value.name()` is one of every
//! method of the tree with this name, unless other libraries have methods with this name as well. The call
//! of an async function has no effect, and a question awaits nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::names::library_sources;
use super::rust::{is_identifier, tokens, without_text};

/// What only a deed may call: it sends a request, tells the holder or the queue of a loss, or ends a session.
const DEEDS: &[&str] = &[
    "abandon",
    "delete_own",
    "delete_sent",
    "lose",
    "notify_waiters",
    "on_missing",
    "send_multi",
    "set_given_up",
    "settle",
    "settle_event",
    "submit",
    "tell_holder",
    "unregister",
];

/// A function that calls a method of its own type with the name of a deed.
const OTHERS: &[(&str, &str)] = &[("Ahead", "settle")];

/// The methods of a session that send a request or end it, and have a name that many methods have.
const SESSION_DEEDS: &[&str] = &["create", "end", "read", "set_data", "write"];

/// Methods of the tree whose name methods of other libraries have as well. They are followed from `self` and
/// from the name of their type only.
const AMBIGUOUS: &[&str] = &[
    "all",
    "any",
    "as_ref",
    "as_str",
    "borrow",
    "clone",
    "cmp",
    "contains",
    "count",
    "drain",
    "drop",
    "end",
    "eq",
    "filter",
    "find",
    "finish",
    "first",
    "fmt",
    "from",
    "get",
    "insert",
    "into",
    "is_empty",
    "iter",
    "join",
    "keys",
    "last",
    "len",
    "load",
    "lock",
    "map",
    "max",
    "min",
    "new",
    "next",
    "now_or_never",
    "of",
    "parse",
    "poll",
    "position",
    "push",
    "read",
    "remove",
    "retain",
    "send",
    "set",
    "since",
    "split",
    "take",
    "then",
    "to_string",
    "upgrade",
    "values",
    "write",
];

/// A function, with the type that has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    of: Option<String>,
    name: String,
}

/// A call, or the mention of a function by its path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    on: Receiver,
    name: String,
}

/// What a function is called on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Receiver {
    Nothing,
    Myself,
    Type(String),
    /// The word before the dot; empty if there is none.
    Value(String),
}

/// Of each function what it calls. Functions with one name of one type count as one.
type Functions = BTreeMap<Name, BTreeSet<Call>>;

fn is_question(function: &Name) -> bool {
    let name = function.name.as_str();
    let is_named_so = ["is_", "has_", "check"].iter().any(|begin| name.starts_with(begin));
    is_named_so || ["fmt", "recorded", "valid_until", "verdict"].contains(&name)
}

fn is_deed(caller: &Name, call: &Call) -> bool {
    let is_other = |(of, name): &(&str, &str)| caller.of.as_deref() == Some(of) && call.name == *name;
    let is_own = call.on == Receiver::Myself;
    DEEDS.contains(&call.name.as_str()) && !(is_own && OTHERS.iter().any(is_other))
}

fn is_deed_of_session(caller: &Name, call: &Call) -> bool {
    let is_session = match &call.on {
        Receiver::Myself => caller.of.as_deref() == Some("Session"),
        Receiver::Type(of) => of == "Session",
        Receiver::Value(value) => value == "session",
        Receiver::Nothing => false,
    };
    SESSION_DEEDS.contains(&call.name.as_str()) && is_session
}

/// How `question` reaches a deed, from call to call, if it does.
fn way_to_a_deed(question: &Name, functions: &Functions) -> Option<String> {
    let mut by_name: BTreeMap<&str, Vec<&Name>> = BTreeMap::new();
    for name in functions.keys() {
        by_name.entry(&name.name).or_default().push(name);
    }
    let mut reached = BTreeSet::from([question]);
    let mut ways = VecDeque::from([vec![question]]);
    while let Some(way) = ways.pop_front() {
        let caller = *way.last()?;
        for call in functions.get(caller)? {
            if is_deed(caller, call) || is_deed_of_session(caller, call) {
                let names: Vec<String> = way.iter().map(|name| shown(name)).collect();
                return Some(format!("{} → {}", names.join(" → "), call.name));
            }
            let named = by_name.get(call.name.as_str()).into_iter().flatten().copied();
            let of = |name: &&Name, of: Option<&String>| name.of.as_ref() == of;
            let callees: Vec<&Name> = match &call.on {
                Receiver::Nothing => named.filter(|name| of(name, None)).collect(),
                Receiver::Type(the) => named.filter(|name| of(name, Some(the))).collect(),
                Receiver::Myself if named.clone().any(|name| of(&name, caller.of.as_ref())) => {
                    named.filter(|name| of(name, caller.of.as_ref())).collect()
                }
                Receiver::Value(_) if AMBIGUOUS.contains(&call.name.as_str()) => Vec::new(),
                Receiver::Myself | Receiver::Value(_) => named.filter(|name| name.of.is_some()).collect(),
            };
            for callee in callees {
                if reached.insert(callee) {
                    ways.push_back([&way[..], &[callee]].concat());
                }
            }
        }
    }
    None
}

fn shown(name: &Name) -> String {
    name.of.as_ref().map_or_else(|| name.name.clone(), |of| format!("{of}::{}", name.name))
}

/// The functions of a file, without the async ones.
fn functions_of(code: &[String]) -> Vec<(Name, BTreeSet<Call>)> {
    let mut found = Vec::new();
    // The types whose functions follow, with the place where each ends.
    let mut within: Vec<(String, usize)> = Vec::new();
    for at in 0..code.len() {
        within.retain(|(_, end)| at < *end);
        let begins_item = at == 0 || ["}", "{", ";", "]", "pub", ")", "unsafe"].contains(&&*code[at - 1]);
        if (code[at] == "impl" || code[at] == "trait") && begins_item {
            let Some(body) = body_from(code, at + 1) else { continue };
            if let Some(of) = type_of(&code[at + 1..body]) {
                within.push((of, end_of(code, body)));
            }
        }
        let is_async = at > 0 && code[at - 1] == "async";
        if code[at] != "fn" || is_async || !is_identifier(&code[at + 1]) {
            continue;
        }
        let Some(body) = body_from(code, at + 2) else { continue };
        let of = within.last().map(|(of, _)| of.clone());
        let calls = calls_of(&code[body..end_of(code, body)], of.as_deref());
        found.push((Name { of, name: code[at + 1].clone() }, calls));
    }
    found
}

/// The place of the brace that opens the body of an item, unless the item has none.
fn body_from(code: &[String], from: usize) -> Option<usize> {
    let mut depth = 0_i32;
    let is_end = |token: &String| {
        depth += i32::from(token == "(" || token == "[") - i32::from(token == ")" || token == "]");
        depth == 0 && (token == "{" || token == ";")
    };
    let end = from + code[from..].iter().position(is_end)?;
    (code[end] == "{").then_some(end)
}

/// The place behind the brace that closes what `open` opens.
fn end_of(code: &[String], open: usize) -> usize {
    let mut depth = 0_i32;
    let is_end = |token: &String| {
        depth += i32::from(token == "{") - i32::from(token == "}");
        depth == 0
    };
    open + code[open..].iter().position(is_end).expect("the end of a body") + 1
}

/// The type that `impl<…> Trait<…> for Type<…> where …` names, without its path and arguments.
fn type_of(header: &[String]) -> Option<String> {
    let mut depth = 0_i32;
    let mut of = None;
    for (at, token) in header.iter().enumerate() {
        let is_arrow = token == ">" && at > 0 && header[at - 1] == "-";
        depth += i32::from(token == "<") - i32::from(token == ">" && !is_arrow);
        match token.as_str() {
            "where" | ":" if depth == 0 => break,
            "for" if depth == 0 => of = None,
            token if depth == 0 && is_identifier(token) && token != "dyn" => of = Some(token.to_owned()),
            _ => {}
        }
    }
    of
}

fn calls_of(body: &[String], of: Option<&str>) -> BTreeSet<Call> {
    let mut found = BTreeSet::new();
    for at in 1..body.len().saturating_sub(1) {
        let (name, before, behind) = (&body[at], body[at - 1].as_str(), body[at + 1].as_str());
        let is_function = is_identifier(name) && name.starts_with(|c: char| c == '_' || c.is_lowercase());
        let is_called = behind == "(" || (behind == "::" && body.get(at + 2).is_some_and(|next| next == "<"));
        if !is_function || before == "fn" || (!is_called && (before != "::" || behind == "::")) {
            continue;
        }
        let word = at.checked_sub(2).map_or("", |at| body[at].as_str());
        let on = match before {
            "." if word == "self" => Receiver::Myself,
            "." => Receiver::Value(if is_identifier(word) { word.to_owned() } else { String::new() }),
            "::" if word == "Self" => of.map_or(Receiver::Nothing, |of| Receiver::Type(of.to_owned())),
            "::" if word.starts_with(char::is_uppercase) => Receiver::Type(word.to_owned()),
            // Of the standard library.
            "::" if word == "mem" || word == "ptr" => continue,
            _ => Receiver::Nothing,
        };
        found.insert(Call { on, name: name.clone() });
    }
    found
}

#[test]
fn no_question_sends_a_request_or_ends_a_hold_or_a_session() {
    let mut functions = Functions::new();
    for (_, code) in library_sources() {
        for (name, calls) in functions_of(&code) {
            functions.entry(name).or_default().extend(calls);
        }
    }
    let questions: Vec<&Name> = functions.keys().filter(|name| is_question(name)).collect();
    assert!(questions.len() > 200, "only {} questions were found", questions.len());
    let wrong: Vec<String> =
        questions.iter().filter_map(|question| way_to_a_deed(question, &functions)).collect();
    assert!(
        wrong.is_empty(),
        "a question has no effect: read what is known, and leave the deed to a function with another name: \
         {wrong:#?}"
    );
    for deed in DEEDS {
        let is_called = |calls: &BTreeSet<Call>| calls.iter().any(|call| call.name == *deed);
        assert!(functions.values().any(is_called), "nothing calls {deed}");
    }
}

#[test]
fn a_deed_is_found_behind_other_calls() {
    let functions_in =
        |source: &str| -> Functions { functions_of(&tokens(&without_text(source))).into_iter().collect() };
    let functions = functions_in(
        r#"
impl<'a, T: Fn() -> u8> Node<T> where T: Send {
    pub fn is_valid(&self) -> bool {
        self.check().is_ok()
    }
    fn check(&self) -> Result<(), Lost> {
        self.nodes().try_for_each(Other::look)
    }
    fn has_gone(&self) -> bool {
        // self.lose();
        self.session.end("lose(); ") && self.0.table.is_empty()
    }
    fn is_new(&self) -> bool {
        helper::<u8>(self)
    }
}
impl Debug for Other {
    fn look(&self) -> bool {
        let is_lost = |node: &Node| node.lose();
        is_lost(self)
    }
    fn is_empty(&self) -> bool {
        self.lose()
    }
    fn check(&self) -> bool {
        Self::quiet()
    }
    fn quiet() -> bool {
        std::mem::take(&mut true)
    }
}
impl Node<u8> {
    async fn check_later(&self) {
        self.lose()
    }
    fn is_idle(&self) -> bool {
        drop(self.check_later());
        true
    }
}
fn helper(node: &Node) -> bool {
    node.session().wait(|session| session.end(LossReason::Closed))
}
"#,
    );
    let ways: Vec<String> = functions
        .keys()
        .filter(|name| is_question(name))
        .filter_map(|name| way_to_a_deed(name, &functions))
        .collect();
    let expected = [
        "Node::check → Other::look → lose",
        "Node::has_gone → end",
        "Node::is_new → helper → end",
        "Node::is_valid → Node::check → Other::look → lose",
        "Other::is_empty → lose",
    ];
    assert_eq!(ways, expected);
}
