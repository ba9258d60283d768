//! The expressions in the arguments of macros.

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, Ident, Pat, Token};

/// A part of a macro's arguments.
pub(crate) enum Part {
    Condition(Expr),
    Expression(Expr),
}

/// What is known of a macro's arguments.
pub(crate) enum Arguments {
    Parsed(Vec<Part>),
    /// As many conditions may be in it.
    Unknown {
        conditions: usize,
    },
}

pub(crate) fn arguments(call: &syn::Macro) -> Arguments {
    let name = call.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
    let tokens = call.tokens.clone();
    let parsed = match name.as_str() {
        "select" => syn::parse2::<Select>(tokens).map(|select| select.0),
        "matches" => syn::parse2::<Matches>(tokens).map(|matches| matches.0),
        "vec" | "join" | "try_join" | "pin" => Punctuated::<Expr, Token![,]>::parse_terminated
            .parse2(tokens)
            .map(|parts| parts.into_iter().map(Part::Expression).collect()),
        // A log line and an assertion guard nothing.
        "trace" | "debug" | "info" | "warn" | "error" | "debug_assert" | "debug_assert_eq" => Ok(Vec::new()),
        _ => return Arguments::Unknown { conditions: conditions(call.tokens.clone()) },
    };
    parsed.map_or_else(
        |_| Arguments::Unknown { conditions: conditions(call.tokens.clone()) },
        Arguments::Parsed,
    )
}

/// How many `if`, `while`, `&&` and `||` the tokens have. A `||` may be a closure without parameters.
fn conditions(tokens: TokenStream) -> usize {
    let mut before = None;
    let mut count = 0;
    for token in tokens {
        match &token {
            TokenTree::Group(group) => count += conditions(group.stream()),
            TokenTree::Ident(word) if word == "if" || word == "while" => count += 1,
            TokenTree::Punct(sign) if "&|".contains(sign.as_char()) && before == Some(sign.as_char()) => {
                count += 1
            }
            _ => {}
        }
        before = match &token {
            TokenTree::Punct(sign) => Some(sign.as_char()),
            _ => None,
        };
    }
    count
}

/// `biased; PATTERN = FUTURE, if CONDITION => HANDLER, … else => HANDLER`
struct Select(Vec<Part>);

impl Parse for Select {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut parts = Vec::new();
        if input.peek(Ident) && input.peek2(Token![;]) {
            input.parse::<Ident>()?;
            input.parse::<Token![;]>()?;
        }
        while !input.is_empty() {
            if input.parse::<Option<Token![else]>>()?.is_none() {
                Pat::parse_multi(input)?;
                input.parse::<Token![=]>()?;
                parts.push(Part::Expression(input.parse()?));
                if input.parse::<Option<Token![,]>>()?.is_some() {
                    input.parse::<Token![if]>()?;
                    parts.push(Part::Condition(input.parse()?));
                }
            }
            input.parse::<Token![=>]>()?;
            let handler = if input.peek(syn::token::Brace) {
                Expr::Block(syn::ExprBlock { attrs: Vec::new(), label: None, block: input.parse()? })
            } else {
                input.parse()?
            };
            parts.push(Part::Expression(handler));
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(Self(parts))
    }
}

/// `VALUE, PATTERN if CONDITION`
struct Matches(Vec<Part>);

impl Parse for Matches {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut parts = vec![Part::Expression(input.parse()?)];
        input.parse::<Token![,]>()?;
        Pat::parse_multi_with_leading_vert(input)?;
        if input.parse::<Option<Token![if]>>()?.is_some() {
            parts.push(Part::Condition(input.parse()?));
        }
        input.parse::<Option<Token![,]>>()?;
        Ok(Self(parts))
    }
}
