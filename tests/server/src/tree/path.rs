/// The path of the parent, `None` for a string without a slash.
///
/// The parent of `/a` is the empty string: the tree takes it as another name of the root, as the real server
/// does.
pub fn parent(path: &str) -> Option<&str> {
    path.rfind('/').and_then(|slash| path.get(..slash))
}

/// Whether the string is a well-formed absolute path.
///
/// Rules of ZooKeeper's `PathUtils`: no empty, `.` or `..` elements, no trailing slash, no control
/// characters, no surrogates, private-use characters or specials.
pub fn validate(path: &str) -> bool {
    if path == "/" {
        return true;
    }
    let Some(rest) = path.strip_prefix('/') else { return false };
    rest.split('/').all(|name| !matches!(name, "" | "." | "..") && name.chars().all(is_allowed))
}

fn is_allowed(character: char) -> bool {
    // The real server checks UTF-16 units, so that every character beyond the basic plane falls on a
    // surrogate.
    !matches!(character,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_paths_are_accepted() {
        for path in ["/", "/a", "/a/b", "/a..b", "/..a", "/a.", "/.a", "/ä/日本", "/_c_x-lock-0000000001"]
        {
            assert!(validate(path), "{path}");
        }
    }

    #[test]
    fn malformed_paths_are_refused() {
        for path in ["", "a", "//", "/a/", "/a//b", "/.", "/..", "/a/./b", "/a/..", "/\0", "/a\u{7f}", "/😀"]
        {
            assert!(!validate(path), "{path}");
        }
    }

    #[test]
    fn parent_of_a_top_level_node_is_the_empty_name_of_the_root() {
        assert_eq!(parent("/a"), Some(""));
        assert_eq!(parent("/a/b"), Some("/a"));
        assert_eq!(parent("a"), None);
    }
}
