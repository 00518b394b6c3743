//! The random number generator of every draw, with a seed that is printed, so that reports are reproducible.

/// The generator xoshiro256**, with its state filled from a seed by SplitMix64 (Blackman & Vigna 2018).
#[derive(Debug, Clone)]
pub struct Generator {
    state: [u64; 4],
}

/// Returns SplitMix64's next number and advances its state.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Generator {
    /// Makes a generator whose numbers all follow from the seed.
    pub fn seeded(seed: u64) -> Self {
        let mut state = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut state)) }
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Returns a number from 0 to below 1, with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number from 0 to below `n`, each equally likely; 0 if `n` is 0. Lemire 2019.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n as u64;
        if n == 0 {
            return 0;
        }
        let unfair = n.wrapping_neg() % n;
        loop {
            let wide = u128::from(self.bits()) * u128::from(n);
            if wide as u64 >= unfair {
                return (wide >> 64) as usize;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_that_its_authors_publish() {
        let mut generator = Generator { state: [1, 2, 3, 4] };
        let numbers: Vec<u64> = (0..4).map(|_| generator.bits()).collect();
        assert_eq!(numbers, [11520, 0, 1_509_978_240, 1_215_971_899_390_074_240]);
        let mut state = 1_234_567;
        assert_eq!(split_mix(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(split_mix(&mut state), 3_203_168_211_198_807_973);
    }

    #[test]
    fn every_number_below_a_bound_comes() {
        let mut generator = Generator::seeded(7);
        let mut seen = [0; 5];
        (0..5000).for_each(|_| seen[generator.below(5)] += 1);
        assert!(seen.iter().all(|count| (900..1100).contains(count)), "{seen:?}");
        assert!((0..1000).all(|_| (0.0..1.0).contains(&generator.unit())));
    }
}
