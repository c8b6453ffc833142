//! Predictions and the cost of wrong ones. This program is small enough to be built for every mutant.

mod counts;
mod drawn;
mod floods;
mod given_time;
mod heavy_steps;
mod hiccups;
mod lockstep;
mod next_due;
mod peace;
mod quality;
mod seed_correction;
mod seed_prediction;
mod twins;
