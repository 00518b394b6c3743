//! A buffer for reading from a pipe. It is small while the program writes little, so that many idle agents cost little
//! memory.

/// The size of a new buffer in bytes.
const SMALL: usize = 2 << 10;
/// The maximum size in bytes: as much as a pipe holds.
const LARGE: usize = 64 << 10;

/// A buffer that grows after a read that filled it.
#[derive(Debug, Default)]
pub(super) struct ReadBuffer {
    space: Vec<u8>,
    /// The number of bytes of the last read.
    read: usize,
}

impl ReadBuffer {
    /// Returns the space for the next read.
    pub(super) fn space(&mut self) -> &mut [u8] {
        if self.space.is_empty() {
            self.space = vec![0; SMALL];
        } else if self.read >= self.space.len() && self.space.len() < LARGE {
            self.space = vec![0; LARGE];
        }
        &mut self.space
    }

    /// Records a read of this many bytes, and returns them.
    pub(super) fn read(&mut self, length: usize) -> &[u8] {
        self.read = length;
        self.space.get(..length).unwrap_or(&self.space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_grows_only_if_a_read_fills_it() {
        let mut buffer = ReadBuffer::default();
        assert_eq!(buffer.space().len(), SMALL);
        buffer.read(SMALL - 1);
        assert_eq!(buffer.space().len(), SMALL);
        buffer.read(SMALL);
        assert_eq!(buffer.space().len(), LARGE);
        buffer.read(LARGE);
        assert_eq!(buffer.space().len(), LARGE);
        buffer.space()[..3].copy_from_slice(b"abc");
        assert_eq!(buffer.read(3), b"abc");
    }
}
