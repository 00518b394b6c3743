//! Plays a stored wire log in the place of an agent.
