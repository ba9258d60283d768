//! The visitor that collects the guards of one file.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr};

use crate::guard::{Becomes, Found, Guard};
use crate::macros::{self, Arguments};

/// Methods whose argument decides by its result: without the guard, every item passes.
const PREDICATES: [&str; 11] = [
    "all",
    "any",
    "filter",
    "find",
    "is_none_or",
    "is_some_and",
    "position",
    "retain",
    "rposition",
    "take_while",
    "is_ok_and",
];

#[derive(Default)]
pub(crate) struct Finder {
    pub(crate) found: Found,
    function: String,
    is_const: bool,
}

impl Finder {
    fn add(&mut self, place: &impl Spanned, becomes: Becomes) {
        if self.is_const {
            self.found.in_const += 1;
            return;
        }
        let span = place.span().byte_range();
        let guard = Guard { span, becomes, function: self.function.clone() };
        // A predicate may be an operand as well.
        if !self.found.guards.contains(&guard) {
            self.found.guards.push(guard);
        }
    }

    /// The whole condition of an `if` or a `while`, or the guard of an arm. Its operands are visited apart.
    fn condition(&mut self, condition: &Expr, is_true_one: bool) {
        if binds(condition) {
            self.add(condition, Becomes::Never);
        } else {
            self.add(condition, Becomes::False);
            if is_true_one && !is_logical(condition) {
                self.add(condition, Becomes::True);
            }
        }
    }

    fn operand(&mut self, operand: &Expr, becomes: Becomes) {
        match operand {
            Expr::Let(_) => {}
            Expr::Paren(inner) if !is_logical(&inner.expr) => self.operand(&inner.expr, becomes),
            // The leaves of `a && b && c`, and not `a && b` as a whole.
            Expr::Binary(it) if becomes == Becomes::True && matches!(it.op, BinOp::And(_)) => {}
            Expr::Binary(it) if becomes == Becomes::False && matches!(it.op, BinOp::Or(_)) => {}
            _ => self.add(operand, becomes),
        }
    }

    fn predicate(&mut self, argument: &Expr) {
        match argument {
            // The operands of its result are visited apart. A result with a type has to be a block.
            Expr::Closure(it) if is_logical(&it.body) || matches!(it.output, syn::ReturnType::Type(..)) => {}
            Expr::Closure(it) => self.add(&it.body, Becomes::True),
            _ => self.add(argument, Becomes::AlwaysTrue),
        }
    }

    fn in_function(&mut self, name: String, is_const: bool, visit: impl FnOnce(&mut Self)) {
        let before = (std::mem::replace(&mut self.function, name), self.is_const);
        self.is_const |= is_const;
        visit(self);
        (self.function, self.is_const) = before;
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes: &[syn::Attribute] = match item {
            syn::Item::Fn(it) => &it.attrs,
            syn::Item::Impl(it) => &it.attrs,
            syn::Item::Mod(it) => &it.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        } else if let syn::Item::Mod(module) = item
            && module.content.is_none()
        {
            self.found.test_modules.push(module.ident.to_string());
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let (name, is_const) = (function.sig.ident.to_string(), function.sig.constness.is_some());
        self.in_function(name, is_const, |this| visit::visit_item_fn(this, function));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            let (name, is_const) = (function.sig.ident.to_string(), function.sig.constness.is_some());
            self.in_function(name, is_const, |this| visit::visit_impl_item_fn(this, function));
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        let name = function.sig.ident.to_string();
        self.in_function(name, false, |this| visit::visit_trait_item_fn(this, function));
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.in_function(item.ident.to_string(), true, |this| visit::visit_item_const(this, item));
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let becomes = match binary.op {
            BinOp::And(_) => Some(Becomes::True),
            BinOp::Or(_) => Some(Becomes::False),
            _ => None,
        };
        if let Some(becomes) = becomes {
            self.operand(&binary.left, becomes);
            self.operand(&binary.right, becomes);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_if(&mut self, conditional: &'ast syn::ExprIf) {
        // An early return without its guard never returns; that it always does would be seen at once.
        let is_early = conditional.else_branch.is_none() && leaves(&conditional.then_branch);
        self.condition(&conditional.cond, !is_early);
        visit::visit_expr_if(self, conditional);
    }

    fn visit_expr_while(&mut self, repeated: &'ast syn::ExprWhile) {
        if !binds(&repeated.cond) {
            self.condition(&repeated.cond, false);
        }
        visit::visit_expr_while(self, repeated);
    }

    fn visit_pat_guard(&mut self, pattern: &'ast syn::PatGuard) {
        self.condition(&pattern.guard, true);
        visit::visit_pat_guard(self, pattern);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let name = call.method.to_string();
        if let (Some(argument), 1) = (call.args.first(), call.args.len())
            && PREDICATES.contains(&name.as_str())
        {
            self.predicate(argument);
        }
        if name == "then" || name == "then_some" {
            self.add(&call.receiver, Becomes::True);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        match macros::arguments(call) {
            Arguments::Parsed(parts) => parts.iter().for_each(|part| match part {
                macros::Part::Condition(condition) => {
                    self.condition(condition, true);
                    self.visit_expr(condition);
                }
                macros::Part::Expression(expression) => self.visit_expr(expression),
            }),
            Arguments::Unknown { conditions } => self.found.in_macros += conditions,
        }
    }
}

/// Whether an item is only in the build of tests.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "test")
                && !condition.contains("not")
        }
        meta => meta.path().is_ident("test"),
    })
}

fn is_logical(condition: &Expr) -> bool {
    match condition {
        Expr::Paren(inner) => is_logical(&inner.expr),
        Expr::Binary(it) => matches!(it.op, BinOp::And(_) | BinOp::Or(_)),
        _ => false,
    }
}

/// Whether the condition is or contains a `let`, so that no expression can replace it.
fn binds(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(it) if matches!(it.op, BinOp::And(_)) => binds(&it.left) || binds(&it.right),
        _ => false,
    }
}

/// Whether the block ends by leaving the function or the turn of a loop.
fn leaves(block: &syn::Block) -> bool {
    let is_leave = |it: &Expr| matches!(it, Expr::Return(_) | Expr::Continue(_) | Expr::Break(_));
    matches!(block.stmts.last(), Some(syn::Stmt::Expr(last, _)) if is_leave(last))
}
