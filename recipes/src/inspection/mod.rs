mod clock;
mod contenders;
mod table;
mod window_info;

pub(crate) use self::clock::estimated_time;
pub use self::contenders::Inspection;
pub(crate) use self::contenders::{InspectedRecipe, PERMITS, holders_first, waiting};
pub(crate) use self::table::age as age_text;
pub use self::window_info::WindowInfo;
