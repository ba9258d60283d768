//! JSON text byte for byte as Jackson writes it, which Curator uses.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CharEscape, Formatter};

/// The first character that UTF-16, and so Java, has as two.
const SUPPLEMENTARY: char = '\u{10000}';

/// Without blanks, as serde_json's compact form. It differs in three things: the hex digits of a control
/// character are upper case, a character that Java has as two is escaped as two, and floating-point numbers
/// are in Java's notation. Where Java before 19 has more digits than a number needs, the text differs.
struct Jackson;

pub(super) fn to_vec<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Jackson))?;
    Ok(text)
}

impl Formatter for Jackson {
    fn write_f32<W: ?Sized + Write>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        writer.write_all(notation(value.into(), &format!("{value:?}"), &format!("{value:e}")).as_bytes())
    }

    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(notation(value, &format!("{value:?}"), &format!("{value:e}")).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some(at) = rest.find(|character| character >= SUPPLEMENTARY) {
            let (before, behind) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            let mut characters = behind.chars();
            if let Some(character) = characters.next() {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04X}")?;
                }
            }
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        let escape: &[u8] = match escape {
            CharEscape::Quote => b"\\\"",
            CharEscape::ReverseSolidus => b"\\\\",
            CharEscape::Solidus => b"\\/",
            CharEscape::Backspace => b"\\b",
            CharEscape::FormFeed => b"\\f",
            CharEscape::LineFeed => b"\\n",
            CharEscape::CarriageReturn => b"\\r",
            CharEscape::Tab => b"\\t",
            CharEscape::AsciiControl(byte) => return write!(writer, "\\u{byte:04X}"),
        };
        writer.write_all(escape)
    }
}

/// A number as Java writes it. Both texts have the fewest digits that tell the number from others.
fn notation(value: f64, decimal: &str, exponent: &str) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return decimal.to_owned();
    }
    match exponent.split_once('e') {
        Some((digits, power)) if !digits.contains('.') => format!("{digits}.0E{power}"),
        _ => exponent.replace('e', "E"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written<T: Serialize>(value: T) -> String {
        String::from_utf8(to_vec(&value).unwrap()).unwrap()
    }

    #[test]
    fn numbers_are_as_java_writes_them() {
        for (value, text) in [
            (0.001, "0.001"),
            (0.00099, "9.9E-4"),
            (1e7, "1.0E7"),
            (9_999_999.0, "9999999.0"),
            (123_456.789, "123456.789"),
            (1e-5, "1.0E-5"),
            (f64::from_bits(1), "5.0E-324"),
            (f64::MAX, "1.7976931348623157E308"),
            (-0.0, "-0.0"),
            (-2.5e-10, "-2.5E-10"),
            (100.0, "100.0"),
        ] {
            assert_eq!(written(value), text);
        }
        assert_eq!((written(0.1_f32), written(1.5e10_f32)), ("0.1".to_owned(), "1.5E10".to_owned()));
    }

    #[test]
    fn text_is_escaped_as_java_escapes_it() {
        // Recorded from Jackson 2.14.
        let text = "a\"b\\c/\u{1}\u{1f}\u{7f}\n\t\u{8}\u{c}\r ü € \u{1f600} \u{2028}";
        let expected = "\"a\\\"b\\\\c/\\u0001\\u001F\u{7f}\\n\\t\\b\\f\\r ü € \\uD83D\\uDE00 \u{2028}\"";
        assert_eq!(written(text), expected);
        assert_eq!(written("\u{1f600}\u{1f600}x"), r#""\uD83D\uDE00\uD83D\uDE00x""#);
    }
}
