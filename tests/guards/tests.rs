use crate::{Found, guards};

fn found(text: &str) -> Found {
    guards(text).unwrap()
}

/// The guards of a function's body, as `text -> what it becomes`.
fn of_body(body: &str) -> Vec<String> {
    let text = format!("fn f() {{ {body} }}");
    let shown = |it: &crate::Guard| format!("{} -> {}", &text[it.span.clone()], it.becomes);
    found(&text).guards.iter().map(shown).collect()
}

#[test]
fn each_operand_is_a_guard_by_itself() {
    assert_eq!(of_body("let x = a && b && !c;"), ["a -> true", "b -> true", "!c -> true"]);
    assert_eq!(
        of_body("let x = a || (b && c);"),
        ["a -> false", "(b && c) -> false", "b -> true", "c -> true"]
    );
}

#[test]
fn a_condition_of_two_ways_is_dropped_both_ways() {
    assert_eq!(of_body("if a { b() }"), ["a -> false", "a -> true"]);
    assert_eq!(of_body("if a && b { c() }"), ["a && b -> false", "a -> true", "b -> true"]);
}

#[test]
fn an_early_return_is_dropped_by_never_returning() {
    assert_eq!(of_body("if a { return; }"), ["a -> false"]);
    assert_eq!(of_body("loop { if a { continue; } b() }"), ["a -> false"]);
}

#[test]
fn a_condition_that_binds_is_never_met_and_its_other_operands_are_dropped() {
    assert_eq!(of_body("if let Some(x) = a && b { c() }"), ["let Some(x) = a && b -> never", "b -> true"]);
}

#[test]
fn the_guard_of_an_arm_is_found() {
    assert_eq!(of_body("match a { Some(_) if b => 1, _ => 2 }"), ["b -> false", "b -> true"]);
    assert_eq!(of_body("matches!(a, Some(_) if b)"), ["b -> false", "b -> true"]);
}

#[test]
fn a_predicate_lets_everything_pass() {
    assert_eq!(of_body("a.filter(|it| it.b());"), ["it.b() -> true"]);
    assert_eq!(of_body("a.filter(Self::b);"), ["Self::b -> always true"]);
    assert_eq!(of_body("a.then(|| b);"), ["a -> true"]);
}

#[test]
fn the_branches_of_a_select_are_read() {
    let select = "tokio::select! { biased; _ = a => {}, x = b(), if c => if x { d() }, else => e(f && g) }";
    assert_eq!(
        of_body(select),
        ["c -> false", "c -> true", "x -> false", "x -> true", "f -> true", "g -> true"]
    );
}

#[test]
fn conditions_that_cannot_be_dropped_are_counted() {
    assert_eq!(found("const fn f() { if a { b() } }").in_const, 2);
    assert_eq!(found("fn f() { unknown!(if a && b {}) }").in_macros, 2);
}

#[test]
fn code_of_tests_has_no_guards() {
    let text = "#[cfg(test)] mod tests { fn f() { if a {} } } #[cfg(test)] mod rule_test;
        #[test] fn g() { if a {} }";
    assert!(found(text).guards.is_empty());
    assert_eq!(found(text).test_modules, ["rule_test"]);
}

#[test]
fn strings_and_comments_have_no_guards() {
    assert_eq!(of_body("let x = \"a && b\"; // if c\n"), Vec::<String>::new());
    assert_eq!(of_body("/* a && b */ let x = '&';"), Vec::<String>::new());
}

#[test]
fn a_guard_knows_its_function() {
    let functions: Vec<String> = found("impl A { fn f(&self) { if a {} } } fn g() { if b {} }")
        .guards
        .into_iter()
        .map(|it| it.function)
        .collect();
    assert_eq!(functions, ["f", "f", "g", "g"]);
}
