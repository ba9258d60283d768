//! The parts of a `multi`.

use super::{OpCode, Reader};
use crate::error::HarnessError;

/// The parts of a `multi` or multi-read whose header has been read; as many as can be read.
pub(crate) fn parts(reader: &mut Reader<'_>) -> Vec<(OpCode, String)> {
    let mut parts = Vec::new();
    while let Ok(Some(part)) = part(reader) {
        parts.push(part);
    }
    parts
}

fn part(reader: &mut Reader<'_>) -> Result<Option<(OpCode, String)>, HarnessError> {
    let (number, done, _error) = (reader.int()?, reader.bool()?, reader.int()?);
    if done {
        return Ok(None);
    }
    let op = OpCode::from_wire(number);
    let path = reader.string()?;
    match op {
        OpCode::Create | OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => {
            reader.buffer()?;
            for _ in 0..reader.int()? {
                let (_permissions, _scheme, _id) = (reader.int()?, reader.buffer()?, reader.buffer()?);
            }
            reader.int()?;
            if op == OpCode::CreateTtl {
                reader.long()?;
            }
        }
        OpCode::SetData => {
            reader.buffer()?;
            reader.int()?;
        }
        OpCode::Delete | OpCode::Check => {
            reader.int()?;
        }
        OpCode::GetData | OpCode::GetChildren => {
            reader.bool()?;
        }
        _ => return Err(HarnessError::malformed(format!("a multi with {op:?} in it"))),
    }
    Ok(Some((op, path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Writer;

    #[test]
    fn a_multi_yields_its_parts_in_order() {
        let header = |writer: Writer, op: i32| writer.int(op).bool(false).int(-1);
        let create = header(Writer::default(), 15).string("/a").buffer(b"x");
        let create = create.int(1).int(31).string("world").string("anyone").int(3);
        let delete = header(create, 2).string("/b").int(-1);
        let check = header(delete, 13).string("/c").int(7);
        let message = check.int(-1).bool(true).int(-1).finish();
        let parts = parts(&mut Reader::new(&message));
        let expected = [(OpCode::Create2, "/a"), (OpCode::Delete, "/b"), (OpCode::Check, "/c")];
        assert_eq!(parts, expected.map(|(op, path)| (op, path.to_owned())));
    }
}
