use indicatif::{ProgressBar, ProgressStyle};

/// The bar on the terminal; nothing where there is no terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    sold: u64,
    refused: u64,
}

impl Progress {
    pub(crate) fn of(orders: usize) -> Self {
        let template = "{bar:40} {pos}/{len} orders, {msg}, {elapsed}";
        let style = ProgressStyle::with_template(template);
        let bar = ProgressBar::new(orders as u64).with_message("opening");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, sold: 0, refused: 0 }
    }

    /// Of `asked` seats, `sold` were sold: all or none.
    pub(crate) fn done(&mut self, sold: u32, asked: u32) {
        self.sold += u64::from(sold);
        self.refused += u64::from(asked.saturating_sub(sold));
        self.bar.set_message(format!("{} seats sold, {} refused", self.sold, self.refused));
        self.bar.inc(1);
    }

    /// Says something that stays, on standard error.
    pub(crate) fn note(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
