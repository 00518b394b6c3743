//! A buffer for reading from a pipe. It is small while the program writes little, so that many idle agents cost little
//! memory.

/// The size of a new buffer in bytes.
const SMALL: usize = 2 << 10;
/// The maximum size in bytes: as much as a pipe holds.
const LARGE: usize = 64 << 10;

/// A buffer that grows with what is read at once.
#[derive(Debug, Default)]
pub(super) struct ReadBuffer(Vec<u8>);

impl ReadBuffer {
    /// Returns the space for the next read.
    pub(super) fn space(&mut self) -> &mut [u8] {
        if self.0.is_empty() {
            self.0 = vec![0; SMALL];
        }
        &mut self.0
    }

    /// Returns the bytes of a read.
    pub(super) fn read(&self, length: usize) -> &[u8] {
        self.0.get(..length).unwrap_or(&self.0)
    }

    /// Makes the space for the next read larger if this read filled it.
    pub(super) fn grow_after(&mut self, length: usize) {
        if length >= self.0.len() && self.0.len() < LARGE {
            self.0 = vec![0; LARGE];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_grows_only_if_a_read_fills_it() {
        let mut buffer = ReadBuffer::default();
        assert_eq!(buffer.space().len(), SMALL);
        buffer.grow_after(SMALL - 1);
        assert_eq!(buffer.space().len(), SMALL);
        buffer.grow_after(SMALL);
        assert_eq!(buffer.space().len(), LARGE);
        buffer.grow_after(LARGE);
        assert_eq!(buffer.space().len(), LARGE);
        buffer.space()[..3].copy_from_slice(b"abc");
        assert_eq!(buffer.read(3), b"abc");
    }
}
