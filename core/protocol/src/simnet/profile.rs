//! The quality of a simulated link, given as numbers, a named preset, or text from a command line.
//!
//! Invariant: [`FromStr`] reads the output of [`Display`](fmt::Display) as the same profile (times to the
//! microsecond). Chances are whole parts per million, so a profile is `Eq` and no float decides a datagram's fate.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// A probability of 1, in parts per million.
pub const ALWAYS_PPM: u32 = 1_000_000;

/// One direction of a link.
///
/// ```
/// use twinstep_protocol::simnet::LegProfile;
/// let lossy = LegProfile { loss_ppm: 50_000, ..LegProfile::PERFECT };
/// assert_eq!(lossy.to_string(), "rtt=0,jitter=0,loss=5");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegProfile {
    /// The minimum time that a datagram takes, one way.
    pub delay: Duration,
    /// The maximum addition to the delay: uniform in 0..jitter, drawn per datagram in whole microseconds.
    pub jitter: Duration,
    /// The share of datagrams that never arrive, in parts per million: 0..=[`ALWAYS_PPM`].
    pub loss_ppm: u32,
    /// The mean length of a run of lost datagrams. With 0 and 1, losses are independent of each other. Otherwise the
    /// losses follow a two-state model (Gilbert 1960) with the same overall share.
    pub burst_datagrams: u32,
    /// The chance that a datagram arrives twice, each copy with its own jitter, in parts per million.
    pub duplicate_ppm: u32,
    /// Whether datagrams keep their order, as in a single queue. Otherwise jitter reorders them.
    pub fifo: bool,
    pub bandwidth: Option<Bandwidth>,
    /// The largest IP packet that passes, if there is a limit: a datagram plus [`IP_BYTES`].
    pub mtu_bytes: Option<u32>,
}

/// The headers of IP (version 4) and UDP, in bytes.
pub const IP_BYTES: u32 = 28;

impl LegProfile {
    pub const PERFECT: LegProfile = LegProfile::preset(0, 0, 0, 1);
    pub const BLACKOUT: LegProfile = LegProfile::preset(0, 0, 100, 1);

    const fn preset(rtt_ms: u64, jitter_ms: u64, loss_percent: u32, burst_datagrams: u32) -> Self {
        LegProfile {
            delay: Duration::from_micros(rtt_ms * 500),
            jitter: Duration::from_millis(jitter_ms),
            loss_ppm: loss_percent * (ALWAYS_PPM / 100),
            burst_datagrams,
            duplicate_ppm: 0,
            fifo: false,
            bandwidth: None,
            mtu_bytes: None,
        }
    }
}

/// A bottleneck with a drop-tail queue before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// Bytes of datagrams (without headers) that pass per second. No datagram passes if it is 0.
    pub bytes_per_s: u32,
    /// Bytes that can wait. A datagram that would exceed this is dropped; an empty queue accepts any datagram.
    pub queue_bytes_max: u32,
}

impl Bandwidth {
    /// A bottleneck whose queue holds 200 ms, and at least two full datagrams: a typical home router.
    #[must_use]
    pub const fn new(bytes_per_s: u32) -> Bandwidth {
        let queue = bytes_per_s / 5;
        Bandwidth {
            bytes_per_s,
            queue_bytes_max: if queue < 3_000 { 3_000 } else { queue },
        }
    }
}

/// Both directions of a link: `up` from a client to the server, `down` back.
///
/// The text form is a preset's name, or settings, or two of these with a `/` between them (up, then down).
///
/// | setting | unit | meaning |
/// |---|---|---|
/// | `rtt=` | ms | round trip: each leg delays by half of it |
/// | `jitter=` | ms | uniform, per leg and datagram |
/// | `loss=` `dup=` | percent | per leg and datagram |
/// | `burst=` | datagrams | mean length of a run of losses |
/// | `kbit=` | 1,000 bit/s | bottleneck of each leg |
/// | `queue=` | bytes | queue of the bottleneck (default: 200 ms) |
/// | `mtu=` | bytes | the largest IP packet that passes; datagrams are 28 bytes smaller |
/// | `fifo` | | datagrams keep their order |
///
/// ```
/// use twinstep_protocol::simnet::LinkProfile;
/// let link: LinkProfile = "rtt=120,jitter=20,loss=5".parse()?;
/// assert_eq!(link.up.delay.as_millis(), 60);
/// assert_eq!("wan".parse(), Ok(LinkProfile::WAN));
/// # Ok::<(), twinstep_protocol::simnet::LinkProfileError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkProfile {
    pub up: LegProfile,
    pub down: LegProfile,
}

impl LinkProfile {
    pub const PERFECT: LinkProfile = LinkProfile::both(LegProfile::PERFECT);
    /// 2 ms round trip.
    pub const LAN: LinkProfile = LinkProfile::both(LegProfile::preset(2, 0, 0, 1));
    /// 100 ms round trip, 20 ms jitter, 2 % loss.
    pub const WAN: LinkProfile = LinkProfile::both(LegProfile::preset(100, 20, 2, 1));
    /// 200 ms round trip, 50 ms jitter, 5 % loss.
    pub const BAD: LinkProfile = LinkProfile::both(LegProfile::preset(200, 50, 5, 1));
    /// 300 ms round trip, 100 ms jitter, 10 % loss in bursts of 4 datagrams on average.
    pub const AWFUL: LinkProfile = LinkProfile::both(LegProfile::preset(300, 100, 10, 4));

    /// The presets by name, from good to bad.
    pub const PRESETS: [(&'static str, LinkProfile); 5] = [
        ("perfect", LinkProfile::PERFECT),
        ("lan", LinkProfile::LAN),
        ("wan", LinkProfile::WAN),
        ("bad", LinkProfile::BAD),
        ("awful", LinkProfile::AWFUL),
    ];

    #[must_use]
    pub const fn both(leg: LegProfile) -> LinkProfile {
        LinkProfile { up: leg, down: leg }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkProfileError {
    #[error(
        "expected a link: perfect, lan, wan, bad, awful, or settings like `rtt=120,jitter=20,loss=5`; got `{got}`"
    )]
    Name { got: String },
    #[error(
        "expected a setting of a link: rtt=, jitter=, loss=, dup=, burst=, kbit=, queue=, mtu= or fifo; got `{got}`"
    )]
    Setting { got: String },
    #[error("expected `{key}=` with {expected}; got `{got}`")]
    Value {
        key: &'static str,
        expected: &'static str,
        got: String,
    },
}

impl FromStr for LinkProfile {
    type Err = LinkProfileError;

    fn from_str(text: &str) -> Result<Self, LinkProfileError> {
        Ok(match text.split_once('/') {
            Some((up, down)) => LinkProfile {
                up: up.parse()?,
                down: down.parse()?,
            },
            None => LinkProfile::both(text.parse()?),
        })
    }
}

impl FromStr for LegProfile {
    type Err = LinkProfileError;

    fn from_str(text: &str) -> Result<Self, LinkProfileError> {
        let text = text.trim();
        if let Some((_, preset)) = LinkProfile::PRESETS.iter().find(|(name, _)| *name == text) {
            return Ok(preset.up);
        }
        if !text.contains('=') && text != FIFO {
            return Err(LinkProfileError::Name {
                got: text.to_owned(),
            });
        }
        let mut leg = LegProfile::PERFECT;
        let mut queue = None;
        for setting in text.split(',').map(str::trim) {
            let Some((key, value)) = setting.split_once('=') else {
                if setting == FIFO {
                    leg.fifo = true;
                    continue;
                }
                return Err(LinkProfileError::Setting {
                    got: setting.to_owned(),
                });
            };
            match key {
                // Half of it each way. `RTT` counts microseconds, so half is 500 ns each.
                "rtt" => leg.delay = Duration::from_nanos(RTT.parse(value)? * 500),
                "jitter" => leg.jitter = Duration::from_micros(JITTER.parse(value)?),
                "loss" => leg.loss_ppm = LOSS.parse(value)? as u32,
                "dup" => leg.duplicate_ppm = DUP.parse(value)? as u32,
                "burst" => leg.burst_datagrams = BURST.parse(value)? as u32,
                "kbit" => leg.bandwidth = Some(Bandwidth::new((KBIT.parse(value)? / 8) as u32)),
                "mtu" => leg.mtu_bytes = Some(MTU.parse(value)? as u32),
                "queue" => queue = Some((value, QUEUE.parse(value)? as u32)),
                _ => {
                    return Err(LinkProfileError::Setting {
                        got: setting.to_owned(),
                    });
                }
            }
        }
        match (queue, &mut leg.bandwidth) {
            (None, _) => {}
            (Some((_, bytes)), Some(bandwidth)) => bandwidth.queue_bytes_max = bytes,
            (Some((value, _)), None) => {
                let expected = "a kbit= setting";
                return Err(LinkProfileError::Value {
                    key: "queue",
                    expected,
                    got: value.to_owned(),
                });
            }
        }
        Ok(leg)
    }
}

impl fmt::Display for LinkProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.up)?;
        if self.down != self.up {
            write!(f, "/{}", self.down)?;
        }
        Ok(())
    }
}

impl fmt::Display for LegProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = LinkProfile::PRESETS
            .iter()
            .find(|(_, link)| link.up == *self)
        {
            return f.write_str(name);
        }
        RTT.write(f, (self.delay * 2).as_micros() as u64)?;
        f.write_str(",")?;
        JITTER.write(f, self.jitter.as_micros() as u64)?;
        f.write_str(",")?;
        LOSS.write(f, u64::from(self.loss_ppm))?;
        if self.burst_datagrams != 1 {
            f.write_str(",")?;
            BURST.write(f, u64::from(self.burst_datagrams))?;
        }
        if self.duplicate_ppm != 0 {
            f.write_str(",")?;
            DUP.write(f, u64::from(self.duplicate_ppm))?;
        }
        if let Some(bandwidth) = self.bandwidth {
            f.write_str(",")?;
            KBIT.write(f, u64::from(bandwidth.bytes_per_s) * 8)?;
            if bandwidth != Bandwidth::new(bandwidth.bytes_per_s) {
                f.write_str(",")?;
                QUEUE.write(f, u64::from(bandwidth.queue_bytes_max))?;
            }
        }
        if let Some(bytes) = self.mtu_bytes {
            f.write_str(",")?;
            MTU.write(f, u64::from(bytes))?;
        }
        if self.fifo {
            write!(f, ",{FIFO}")?;
        }
        Ok(())
    }
}

/// A setting: a decimal number with a few places, stored as a whole number of its smallest unit.
struct Setting {
    key: &'static str,
    /// The number of decimal places: the smallest unit is 10^-places of the written one.
    places: u32,
    max: u64,
    expected: &'static str,
}

const FIFO: &str = "fifo";
const RTT: Setting = Setting {
    key: "rtt",
    places: 3,
    max: 60_000_000,
    expected: "milliseconds from 0 to 60000",
};
const JITTER: Setting = Setting {
    key: "jitter",
    places: 3,
    max: 60_000_000,
    expected: "milliseconds from 0 to 60000",
};
const LOSS: Setting = Setting {
    key: "loss",
    places: 4,
    max: ALWAYS_PPM as u64,
    expected: "percent from 0 to 100",
};
const DUP: Setting = Setting {
    key: "dup",
    places: 4,
    max: ALWAYS_PPM as u64,
    expected: "percent from 0 to 100",
};
const BURST: Setting = Setting {
    key: "burst",
    places: 0,
    max: 10_000,
    expected: "datagrams from 0 to 10000",
};
const MTU: Setting = Setting {
    key: "mtu",
    places: 0,
    max: 65_535,
    expected: "bytes from 0 to 65535",
};
const KBIT: Setting = Setting {
    key: "kbit",
    places: 3,
    max: u32::MAX as u64 * 8,
    expected: "thousands of bits a second from 0 to 34359738",
};
const QUEUE: Setting = Setting {
    key: "queue",
    places: 0,
    max: u32::MAX as u64,
    expected: "bytes from 0 to 4294967295",
};

impl Setting {
    fn parse(&self, text: &str) -> Result<u64, LinkProfileError> {
        self.units(text).ok_or_else(|| LinkProfileError::Value {
            key: self.key,
            expected: self.expected,
            got: text.to_owned(),
        })
    }

    fn units(&self, text: &str) -> Option<u64> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let places = self.places as usize;
        let is_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || part.len() > places || !is_digits(whole) || !is_digits(part) {
            return None;
        }
        let scaled = whole
            .parse::<u64>()
            .ok()?
            .checked_mul(10u64.pow(self.places))?;
        let units = scaled.checked_add(part_units(part, places))?;
        (units <= self.max).then_some(units)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, units: u64) -> fmt::Result {
        let scale = 10u64.pow(self.places);
        write!(f, "{}={}", self.key, units / scale)?;
        let (mut part, mut digits) = (units % scale, self.places as usize);
        if part == 0 {
            return Ok(());
        }
        while part % 10 == 0 {
            part /= 10;
            digits -= 1;
        }
        write!(f, ".{part:0digits$}")
    }
}

/// The digits after the point as a whole number of `places` digits: "5" with 3 places is 500.
fn part_units(digits: &str, places: usize) -> u64 {
    let padded = digits.bytes().chain(core::iter::repeat(b'0')).take(places);
    padded.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn a_preset_is_printed_by_its_name() {
        for (name, link) in LinkProfile::PRESETS {
            assert_eq!(link.to_string(), name);
            assert_eq!(name.parse(), Ok(link));
        }
    }

    #[test]
    fn settings_apply_to_both_legs() {
        let link: LinkProfile =
            "rtt=121, jitter=20.5, loss=0.01, dup=1, burst=3, kbit=256, mtu=576"
                .parse()
                .unwrap();
        let leg = LegProfile {
            delay: Duration::from_micros(60_500),
            jitter: Duration::from_micros(20_500),
            loss_ppm: 100,
            burst_datagrams: 3,
            duplicate_ppm: 10_000,
            fifo: false,
            bandwidth: Some(Bandwidth {
                bytes_per_s: 32_000,
                queue_bytes_max: 6_400,
            }),
            mtu_bytes: Some(576),
        };
        assert_eq!(link, LinkProfile::both(leg));
    }

    #[test]
    fn the_two_legs_may_have_different_settings() {
        let link: LinkProfile = "lan/rtt=80,fifo".parse().unwrap();
        assert_eq!(link.up, LinkProfile::LAN.up);
        assert_eq!(link.down.delay, Duration::from_millis(40));
        assert_eq!(link.to_string(), "lan/rtt=80,jitter=0,loss=0,fifo");
    }

    #[test]
    fn the_error_for_a_refused_text_names_the_expected_form() {
        #[track_caller]
        fn check(text: &str, message: &str) {
            let error = text.parse::<LinkProfile>().unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
        check(
            "dsl",
            "expected a link: perfect, lan, wan, bad, awful, or settings",
        );
        check("", "expected a link");
        check("rtt=50,lossy=2", "expected a setting of a link: rtt=");
        check("rtt=50,bad", "got `bad`");
        check("rtt=50,", "got ``");
        check(
            "loss=101",
            "expected `loss=` with percent from 0 to 100; got `101`",
        );
        check("loss=-1", "got `-1`");
        check(
            "rtt=1e3",
            "expected `rtt=` with milliseconds from 0 to 60000; got `1e3`",
        );
        check("rtt=0.0001", "got `0.0001`");
        check("rtt=99999999999999999999", "milliseconds");
        check("jitter=.5", "got `.5`");
        check("burst=", "expected `burst=` with datagrams");
        check("queue=5", "expected `queue=` with a kbit= setting");
        check("wan/dsl", "got `dsl`");
    }

    fn any_leg() -> impl Strategy<Value = LegProfile> {
        let bandwidth = proptest::option::of((any::<u32>(), any::<u32>(), any::<bool>()));
        let mtu = proptest::option::of(0u32..=65_535);
        let times = (0u64..30_000_000, 0u64..60_000_000);
        let chances = (0..=ALWAYS_PPM, 0..=ALWAYS_PPM, 0u32..=10_000);
        (times, chances, any::<bool>(), bandwidth, mtu).prop_map(
            |(times, chances, fifo, bandwidth, mtu_bytes)| LegProfile {
                delay: Duration::from_micros(times.0),
                jitter: Duration::from_micros(times.1),
                loss_ppm: chances.0,
                duplicate_ppm: chances.1,
                burst_datagrams: chances.2,
                fifo,
                mtu_bytes,
                bandwidth: bandwidth.map(|(bytes_per_s, queue_bytes_max, usual)| {
                    if usual {
                        Bandwidth::new(bytes_per_s)
                    } else {
                        Bandwidth {
                            bytes_per_s,
                            queue_bytes_max,
                        }
                    }
                }),
            },
        )
    }

    proptest! {
        #[test]
        fn a_printed_profile_parses_to_the_same_profile(up in any_leg(), down in any_leg()) {
            let link = LinkProfile { up, down };
            prop_assert_eq!(link.to_string().parse::<LinkProfile>(), Ok(link));
        }

        #[test]
        fn parsing_a_profile_never_panics(text in "[a-z0-9=.,/ -]{0,40}") {
            let _ = text.parse::<LinkProfile>();
        }
    }
}
