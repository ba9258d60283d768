use std::fmt::{Display, Write};

/// A picture in the making, in plain SVG.
#[derive(Debug, Default)]
pub(super) struct Svg {
    body: String,
    width: f64,
    height: f64,
}

/// A rectangle: left, top, width, height.
pub(super) type Frame = (f64, f64, f64, f64);

impl Svg {
    /// A filled rectangle with `title` as its tooltip.
    pub(super) fn bar(&mut self, (x, y, width, height): Frame, class: &str, title: impl Display) {
        // Never too thin to be seen.
        let width = width.max(0.8);
        self.grow(x + width, y + height);
        let title = escape(&title.to_string());
        let _ = write!(
            self.body,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}">"#
        );
        let _ = writeln!(self.body, "<title>{title}</title></rect>");
    }

    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, text: impl Display) {
        let text = escape(&text.to_string());
        self.grow(x + 6.5 * text.chars().count() as f64, y + 4.0);
        let _ = writeln!(self.body, r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{text}</text>"#);
    }

    fn grow(&mut self, x: f64, y: f64) {
        self.width = self.width.max(x);
        self.height = self.height.max(y);
    }

    /// The whole file.
    pub(super) fn finish(self, style: &str) -> String {
        let (width, height) = (self.width + 20.0, self.height + 10.0);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\">\n\
             <style>{style}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}</svg>\n",
            self.body
        )
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_the_picture_is_as_large_as_what_is_in_it() {
        let mut svg = Svg::default();
        svg.bar((10.0, 20.0, 100.0, 8.0), "alone", "a < b & \"c\"");
        let text = svg.finish("");
        assert!(text.contains("a &lt; b &amp; &quot;c&quot;"), "{text}");
        assert!(text.contains(r#"width="130" height="38""#), "{text}");
    }
}
