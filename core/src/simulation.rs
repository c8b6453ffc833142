//! The step contract: the trait that a game author implements, and the input and output of a step.
//!
//! ```text
//!            rules (read-only)
//!              │
//!   frame ──▶ step ──▶ the next state          Law Pure: the rules and the frame are all that goes in,
//!              │                               the state and the effects are all that comes out.
//!              └─────▶ effects: asks, cues, claims
//!
//!   FrameData  = roster · outcomes · claims · commands · inputs      one canonical order
//!   Frame      = FrameData + rules + queries + perspective           the argument of `step`
//! ```
//!
//! [`FrameData`] is sealed, sent, journalled and compared. [`Frame`] is a step's view of it: it adds the rules, the
//! tick length, the moves of bots, the queries that the outcomes answer, and a [`Perspective`] (which phase, which
//! client's screen).
//!
//! Law **Canonical**: a frame has one order, built by the sealer and checked by the stepper: roster by player, outcomes
//! by (tick asked, key), claims by (player, tick), commands by (player, sequence), fragments by entry. Law **Only on
//! difference**: equality covers tick, roster, outcomes, claims, commands, and each input's value and presence. It
//! covers neither fragments, nor the cadence, nor whether an input was filled.
//!
//! The trait, `FrameData`, `Frame` and `Effects` share a file because each is defined in terms of the others.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bounds::{ASKS_PER_TICK, LEAD_MAX, PLAYERS_MAX, QUERIES_WAITING_MAX};
use crate::entries::{Answer, Fragment, Inputs, LargeEntry, OpenQuery, Order, RosterChange};
use crate::ids::{Key, PlayerId, Tick};
use crate::memo::StepMemos;
use crate::perspective::{Perspective, Phase};
use crate::players::PlayerSet;
use crate::turn::Cadence;
pub use crate::values::{Controls, Never, Wire};

/// A game: a state stepped by frames.
///
/// Law **Pure**: [`step`](Simulation::step) is a function of the state, the rules and the frame. It uses no clock,
/// system randomness, thread, file or hash-ordered map. Law **One door**: a step asks a query ([`Effects::ask`]) for
/// anything that is not deterministic, and the answer comes in a later frame.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a game",
    label = "this type is not `Simulation`",
    note = "implement `twinstep_core::Simulation` for the state of your game"
)]
pub trait Simulation: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The game's name, 1 to 64 bytes. Compared in the handshake.
    const NAME: &'static str;
    /// The game's version: raise it whenever the results of `step` change. Compared in the handshake.
    const VERSION: u32;

    /// Read-only content (level, tuning), shared. Its digest is compared in the handshake; it is sent only to clients
    /// that lack it and accept it.
    type Rules: Serialize + Send + Sync + 'static;
    /// The state of a player's controls during one tick.
    type Input: Controls;
    /// A player's discrete order. [`Never`] if the game has none.
    type Command: Wire;
    /// A question that the simulation must not answer itself.
    type Query: Wire;
    /// The answer to a query.
    type Outcome: Wire;
    /// An effect to show or play once, such as a sound.
    type Cue: Wire;

    /// Steps one tick.
    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>);

    /// Decides which side answers a query with a player's key ([`Key::player`]) in a match where owners answer: that
    /// player's client if `true`, the default; otherwise the server. Server and clients must reach the same decision,
    /// so this must depend on the query alone. The server answers all queries with other keys.
    #[must_use]
    fn owner_answers(query: &Self::Query) -> bool {
        let _ = query;
        true
    }

    /// The label of this state in a list of saved games, such as "islands, year 3, four towns". Empty by default; a
    /// game with a label of more than 256 bytes is not saved. A list shows labels without loading worlds, so it also
    /// shows those of games with another [`VERSION`](Simulation::VERSION) or other rules.
    #[must_use]
    fn save_label(&self, rules: &Self::Rules) -> String {
        let _ = rules;
        String::new()
    }

    /// Plays a seat that no human holds: returns a bot's move, or `None`, the default, if the seat is empty.
    ///
    /// Called every tick for each player number that no human holds: free seats, and dropped players' seats. It is
    /// given the state before the step. In the step, the [frame](Frame) contains the bot's input and command, so a step
    /// needs no other code for bots. When a human takes that seat, the step sees [`Joined`](RosterChange::Joined), and
    /// this is no longer called for the seat. Law **Pure** applies here as well.
    #[must_use]
    fn bot(&self, player: PlayerId, tick: Tick, rules: &Self::Rules) -> Option<BotMove<Self>> {
        let _ = (player, tick, rules);
        None
    }
}

/// The frame of one tick, as it is sealed, sent, journalled and compared.
pub struct FrameData<S: Simulation> {
    /// The tick of this frame.
    pub tick: Tick,
    /// The players that joined, were dropped, returned or left, in player order.
    pub roster: Vec<(PlayerId, RosterChange)>,
    /// Answers to open queries, in (tick asked, key) order.
    pub outcomes: Vec<Answer<S::Outcome>>,
    /// Admitted claims, in (player, tick emitted) order.
    pub claims: Vec<Order<S::Command>>,
    /// Commands, in (player, sequence) order.
    pub commands: Vec<Order<S::Command>>,
    /// Fragments of large outcomes and commands, in entry order; outside equality and digest, because a step sees only
    /// whole entries. An entry that ends in this frame is also in the lists above, but only its fragment is encoded.
    pub fragments: Vec<Fragment>,
    /// The input of each present player.
    pub inputs: Inputs<S::Input>,
    /// The players whose input the server had to fill. Telemetry, outside equality and digest.
    pub filled: PlayerSet,
    /// The match's cadence from this tick onwards, if it changes. It can change only at a turn's first tick. Outside
    /// equality and digest.
    pub cadence: Option<Cadence>,
}

impl<S: Simulation> FrameData<S> {
    /// An empty frame for `tick`, without inputs or events.
    #[must_use]
    pub fn empty(tick: Tick) -> Self {
        FrameData {
            tick,
            roster: Vec::new(),
            outcomes: Vec::new(),
            claims: Vec::new(),
            commands: Vec::new(),
            fragments: Vec::new(),
            inputs: Inputs::default(),
            filled: PlayerSet::default(),
            cadence: None,
        }
    }

    /// An empty frame for `tick` with space for the entries of a busy tick, for reused slots that must not allocate
    /// later. About 2 KiB for small commands and outcomes.
    #[must_use]
    pub fn preallocated(tick: Tick) -> Self {
        FrameData {
            roster: Vec::with_capacity(4),
            outcomes: Vec::with_capacity(8),
            claims: Vec::with_capacity(8),
            commands: Vec::with_capacity(16),
            ..FrameData::empty(tick)
        }
    }

    /// Makes this an empty frame for `tick`, keeping its buffers.
    pub fn reset(&mut self, tick: Tick) {
        self.tick = tick;
        self.roster.clear();
        self.outcomes.clear();
        self.claims.clear();
        self.commands.clear();
        self.fragments.clear();
        self.inputs.clear();
        self.filled = PlayerSet::default();
        self.cadence = None;
    }

    /// Returns `true` if the frame contains only inputs.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.roster.is_empty()
            && self.outcomes.is_empty()
            && self.claims.is_empty()
            && self.commands.is_empty()
            && self.fragments.is_empty()
            && self.cadence.is_none()
    }

    /// Returns `true` if the frame is in canonical order, without duplicates.
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        fn ascending<T, K: Ord>(items: &[T], key: impl Fn(&T) -> K) -> bool {
            items.windows(2).all(|w| key(&w[0]) < key(&w[1]))
        }
        ascending(&self.roster, |r| r.0)
            && ascending(&self.outcomes, |o| (o.asked, o.key))
            && ascending(&self.claims, |c| (c.player, c.seq))
            && ascending(&self.commands, |c| (c.player, c.seq))
            && ascending(&self.fragments, |f| f.entry)
    }

    /// Adds at most `room` bytes of the large entry `whole`, starting at offset `from`, or after the bytes of this
    /// entry that the frame already contains. Returns the number of bytes added.
    pub fn add_fragment(
        &mut self,
        entry: LargeEntry,
        whole: &[u8],
        from: usize,
        room: usize,
    ) -> usize {
        let place = self.fragments.binary_search_by_key(&entry, |f| f.entry);
        let at = place.unwrap_or_else(|at| {
            let bytes = Vec::new();
            let (from, left) = (from as u32, (whole.len() - from) as u32);
            self.fragments.insert(
                at,
                Fragment {
                    entry,
                    from,
                    left,
                    bytes,
                },
            );
            at
        });
        let fragment = &mut self.fragments[at];
        let next = whole.len() - fragment.left as usize;
        let added = room.min(fragment.left as usize);
        fragment.bytes.extend_from_slice(&whole[next..next + added]);
        fragment.left -= added as u32;
        added
    }

    /// Returns `true` if this frame contains the last fragment of `entry`, so that it is not encoded in a list.
    #[must_use]
    pub fn ends(&self, entry: LargeEntry) -> bool {
        // A linear search: nearly all frames have no fragments.
        self.fragments
            .iter()
            .any(|f| f.left == 0 && f.entry == entry)
    }

    /// Drops the last fragments of entries that are no longer in the lists.
    pub fn drop_ends_of_missing(&mut self) {
        let mut fragments = core::mem::take(&mut self.fragments);
        fragments.retain(|f| f.left > 0 || self.contains(f.entry));
        self.fragments = fragments;
    }

    /// Returns `true` if the lists contain this entry.
    #[must_use]
    pub fn contains(&self, entry: LargeEntry) -> bool {
        match entry {
            LargeEntry::Outcome { asked, key } => {
                let is_it = |a: &Answer<_>| (a.asked, a.key) == (asked, key);
                self.outcomes
                    .iter()
                    .any(|answer| is_it(answer) && answer.outcome.is_some())
            }
            LargeEntry::Command { player, seq } => {
                let is_it = |o: &Order<_>| (o.player, o.seq) == (player, seq);
                self.commands.iter().any(is_it)
            }
        }
    }
}

impl<S: Simulation> Clone for FrameData<S> {
    fn clone(&self) -> Self {
        let mut copy = FrameData::empty(self.tick);
        copy.clone_from(self);
        copy
    }

    fn clone_from(&mut self, other: &Self) {
        self.tick = other.tick;
        self.roster.clone_from(&other.roster);
        self.outcomes.clone_from(&other.outcomes);
        self.claims.clone_from(&other.claims);
        self.commands.clone_from(&other.commands);
        self.fragments.clone_from(&other.fragments);
        self.inputs.clone_from(&other.inputs);
        self.filled = other.filled;
        self.cadence = other.cadence;
    }
}

impl<S: Simulation> PartialEq for FrameData<S> {
    fn eq(&self, other: &Self) -> bool {
        // `fragments`, `filled` and `cadence` do not count (law Only on difference).
        self.tick == other.tick
            && self.inputs == other.inputs
            && self.roster == other.roster
            && self.outcomes == other.outcomes
            && self.claims == other.claims
            && self.commands == other.commands
    }
}

impl<S: Simulation> Eq for FrameData<S> {}

impl<S: Simulation> fmt::Debug for FrameData<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Held<'a, I>(&'a Inputs<I>);
        impl<I: fmt::Debug> fmt::Debug for Held<'_, I> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_map().entries(self.0.iter()).finish()
            }
        }
        f.debug_struct("FrameData")
            .field("tick", &self.tick)
            .field("roster", &self.roster)
            .field("outcomes", &self.outcomes)
            .field("claims", &self.claims)
            .field("commands", &self.commands)
            .field("fragments", &self.fragments)
            .field("inputs", &Held(&self.inputs))
            .field("filled", &self.filled)
            .field("cadence", &self.cadence)
            .finish()
    }
}

/// The input and the command of a bot in one tick: see [`Simulation::bot`].
pub struct BotMove<S: Simulation> {
    /// The input that the bot holds.
    pub input: S::Input,
    /// The command that the bot issues. It bypasses the referee.
    pub command: Option<S::Command>,
}

impl<S: Simulation> BotMove<S> {
    /// Holds an input, without a command.
    #[must_use]
    pub fn hold(input: S::Input) -> Self {
        BotMove {
            input,
            command: None,
        }
    }
}

pub(crate) struct BotMoves<S: Simulation> {
    pub(crate) inputs: Inputs<S::Input>,
    /// In player order.
    pub(crate) commands: Vec<(PlayerId, S::Command)>,
}

impl<S: Simulation> Default for BotMoves<S> {
    fn default() -> Self {
        BotMoves {
            inputs: Inputs::default(),
            commands: Vec::with_capacity(PLAYERS_MAX),
        }
    }
}

/// The frame of one tick, as a step sees it.
pub struct Frame<'a, S: Simulation> {
    pub(crate) data: &'a FrameData<S>,
    /// `answered[i]` is the query of `data.outcomes[i]`.
    pub(crate) answered: &'a [OpenQuery<S::Query>],
    pub(crate) bots: &'a BotMoves<S>,
    pub(crate) rules: &'a S::Rules,
    pub(crate) perspective: Perspective<'a>,
    pub(crate) tick_ns: u32,
}

impl<'a, S: Simulation> Frame<'a, S> {
    /// The tick being stepped.
    ///
    /// The first tick is set by the match's configuration. Tick numbers have no gaps.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.data.tick
    }

    /// The time that one step simulates, 1 ms to 1 s: the match's configured tick length, independent of the rate that
    /// its server chose. It is the same in all steps of a match, on every machine and in replays.
    ///
    /// This is game time. A match may slow its ticks down for a machine that cannot keep up, local play and replays run
    /// at any speed, and a server may change its rate during play. None of this affects a step, so objects move equally
    /// far per tick.
    ///
    /// ```
    /// # use twinstep_core::{Effects, Frame, Never, Simulation};
    /// # #[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
    /// # struct Ball { x: f32 }
    /// # impl Simulation for Ball {
    /// #     const NAME: &'static str = "ball";
    /// #     const VERSION: u32 = 1;
    /// #     type Rules = ();
    /// #     type Input = i8;
    /// #     type Command = Never;
    /// #     type Query = Never;
    /// #     type Outcome = Never;
    /// #     type Cue = Never;
    /// fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
    ///     let seconds = frame.tick_length().as_secs_f32();
    ///     for (_, held) in frame.inputs() {
    ///         self.x += 4.0 * f32::from(*held) * seconds;
    ///     }
    /// }
    /// # }
    /// # use twinstep_core::{PlayerId, testing::Solo};
    /// # let mut game = Solo::new(Ball::default(), ());
    /// # game.join(PlayerId(0)).hold(PlayerId(0), 1).run(60);
    /// # assert!((game.sim().x - 4.0).abs() < 0.001);
    /// ```
    #[must_use]
    pub fn tick_length(&self) -> Duration {
        Duration::from_nanos(self.tick_ns.into())
    }

    /// The game's read-only content.
    #[must_use]
    pub fn rules(&self) -> &'a S::Rules {
        self.rules
    }

    /// The roster changes since the last tick, in player order.
    pub fn roster(&self) -> impl Iterator<Item = (PlayerId, RosterChange)> + use<'a, S> {
        self.data.roster.iter().copied()
    }

    /// The inputs of all present players and [bots](Simulation::bot), in player order.
    pub fn inputs(&self) -> impl Iterator<Item = (PlayerId, &'a S::Input)> + use<'a, S> {
        let (persons, bots) = (&self.data.inputs, &self.bots.inputs);
        let input = |player| Some((player, persons.get(player).or_else(|| bots.get(player))?));
        let all = persons.players().or(bots.players());
        all.iter().filter_map(input)
    }

    /// The input of one player. `None` if neither the player nor a bot plays, which differs from a neutral input.
    #[must_use]
    pub fn input(&self, player: PlayerId) -> Option<&'a S::Input> {
        let person = self.data.inputs.get(player);
        person.or_else(|| self.bots.inputs.get(player))
    }

    /// Returns `true` if a [bot](Simulation::bot) plays for this player in this tick.
    #[must_use]
    pub fn is_bot(&self, player: PlayerId) -> bool {
        self.bots.inputs.get(player).is_some()
    }

    /// The admitted orders: claims first, then commands, each in (player, sequence) order; then the commands of bots,
    /// in player order.
    pub fn commands(&self) -> impl Iterator<Item = (PlayerId, &'a S::Command)> + use<'a, S> {
        let orders = self.data.claims.iter().chain(&self.data.commands);
        let bots = self.bots.commands.iter();
        orders
            .map(|order| (order.player, &order.command))
            .chain(bots.map(|(player, command)| (*player, command)))
    }

    /// Answers to queries asked earlier: the key, the query, and the outcome, or `None` if the query was not answered.
    ///
    /// Every query that [`ask`](Effects::ask) did not drop gets exactly one entry, in one frame.
    pub fn outcomes(
        &self,
    ) -> impl Iterator<Item = (Key, &'a S::Query, Option<&'a S::Outcome>)> + use<'a, S> {
        let answers = self.answered.iter().zip(&self.data.outcomes);
        answers.map(|(open, answer)| (open.key, &open.query, answer.outcome.as_ref()))
    }

    /// The simulation to which this step belongs.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.perspective.phase()
    }

    /// The authority's next tick: all ticks before it are confirmed. In the authority phase it is the tick being
    /// stepped.
    #[must_use]
    pub fn confirmed(&self) -> Tick {
        self.perspective.confirmed()
    }

    /// Returns `true` if the player is a local player of this client. Always `false` in the authority phase.
    #[must_use]
    pub fn is_local(&self, player: PlayerId) -> bool {
        self.perspective.locals().contains(player)
    }

    /// The prediction's tick at which this client first knew the input of `player` for `tick` (announced or confirmed).
    /// [`Tick::MAX`] while the input is guessed; `tick` itself in the authority phase, and for a bot. For an input
    /// confirmed before this client's record starts, a confirmed tick.
    #[must_use]
    pub fn learned(&self, player: PlayerId, tick: Tick) -> Tick {
        let Some(learned) = self.perspective.learned() else {
            return tick;
        };
        match learned.get(player, tick) {
            Some(known) => known,
            // It follows from the state: nothing is left to learn.
            None if self.is_bot(player) => tick,
            // Older than this client's record. Callers only ask whether the returned tick is confirmed, and it is.
            None if tick + LEAD_MAX < self.perspective.confirmed() => tick + LEAD_MAX,
            // Confirmed before this client joined, so treated as known at that tick.
            None if tick < self.perspective.confirmed() => tick,
            None => Tick::MAX,
        }
    }

    /// Returns `true` if a projectile that `shooter` fired at `born` is a ghost on this screen: harmless, and drawn
    /// between the muzzle as shown and its true path. Once the authority has reached the tick at which the shot became
    /// known, the ghost is promoted and behaves like a local projectile.
    ///
    /// Ghost ⇔ prediction ∧ shooter not local ∧ confirmed < learned(shooter, born).
    #[must_use]
    pub fn is_ghost(&self, shooter: PlayerId, born: Tick) -> bool {
        self.phase() == Phase::Prediction
            && !self.is_local(shooter)
            && self.confirmed() < self.learned(shooter, born)
    }
}

/// Collects the queries, cues and claims of one step. A step must not read them back.
pub struct Effects<S: Simulation> {
    asks: Vec<(Key, S::Query)>,
    asked_twice: Option<Key>,
    cues: Vec<(Key, S::Cue)>,
    claims: Vec<(PlayerId, S::Command)>,
    claimants: PlayerSet,
    withheld: bool,
    phase: Phase,
    memos: StepMemos,
}

impl<S: Simulation> Effects<S> {
    /// An empty collector in the authority phase, without claimants.
    #[must_use]
    pub fn new() -> Self {
        Effects {
            asks: Vec::with_capacity(ASKS_PER_TICK),
            asked_twice: None,
            cues: Vec::with_capacity(64),
            claims: Vec::with_capacity(4),
            claimants: PlayerSet::default(),
            withheld: false,
            phase: Phase::Authority,
            memos: StepMemos::default(),
        }
    }

    /// Asks a question that the simulation must not answer itself. Exactly one entry of a later frame's
    /// [`outcomes`](crate::Frame::outcomes) answers it, in the next frame at the earliest.
    ///
    /// At most [`ASKS_PER_TICK`] queries are opened in a tick, and at most
    /// [`QUERIES_OPEN_MAX`](crate::bounds::QUERIES_OPEN_MAX) are open. The other queries of a burst wait, and are
    /// opened in the next ticks, in key order within a step: 40 blasts in one tick are all answered, the last ones two
    /// ticks later than the first. At most [`QUERIES_WAITING_MAX`] wait. A query beyond these is dropped and gets no
    /// answer; the server logs that, and the test kit reports it. Each query needs its own key, derived from its cause.
    ///
    /// # Panics
    /// In debug builds, if this step has already asked under `key`, or has already asked [`QUERIES_WAITING_MAX`]
    /// queries. A release build drops the second query of a key ([`asked_twice`](Effects::asked_twice)).
    #[track_caller]
    pub fn ask(&mut self, key: Key, query: S::Query) {
        if self.asks.iter().all(|(k, _)| *k != key) {
            self.asks.push((key, query));
            debug_assert!(
                self.asks.len() <= QUERIES_WAITING_MAX,
                "expected at most {QUERIES_WAITING_MAX} queries in one step, got one more ({key}): ask over several ticks, or \
                 ask once for all of them"
            );
            return;
        }
        self.asked_twice.get_or_insert(key);
        debug_assert!(
            false,
            "expected a key of its own for each question of a step, got {key} twice: derive it from its cause, such as \
             a player's own counter (`Key::player`), or ask once"
        );
    }

    /// Emits a cue, which is shown or played once. Its key is a cause and that cause's own count: see [`Key`] for the
    /// rule, and for cues that share a key.
    pub fn cue(&mut self, key: Key, cue: S::Cue) {
        self.cues.push((key, cue));
    }

    /// Emits a cue that is shown only after confirmation: a prediction does not start it.
    pub fn cue_when_confirmed(&mut self, key: Key, cue: S::Cue) {
        if self.phase == Phase::Authority {
            self.cues.push((key, cue));
        }
    }

    /// Emits a command on behalf of the local player `player`, in the prediction ("I died").
    ///
    /// A claim is accepted only from the first step of a new tick, never from re-simulation, and at most once per
    /// player and tick. Other claims are ignored, so a step can call this without checking whether the player is local.
    /// The call does not change the state in its own tick: the claim is among the commands of the next frame.
    pub fn claim(&mut self, player: PlayerId, command: S::Command) {
        if self.claimants.contains(player) {
            // At most one claim per player and tick.
            self.claimants.set(player, false);
            self.claims.push((player, command));
        }
    }

    /// Marks this step as one that withheld an effect because its cause is unconfirmed (a ghost hit something).
    ///
    /// A step whose state would differ between the phases **must** call this in the prediction: the assumed frame
    /// then counts as different when the confirmed frame arrives, and the prediction is rebuilt.
    pub fn withhold(&mut self) {
        self.withheld = true;
    }

    /// The queries of this step, in the order in which they were asked.
    #[must_use]
    pub fn asks(&self) -> &[(Key, S::Query)] {
        &self.asks
    }

    /// The first key that this step used for two queries. The second query was dropped and never gets an answer.
    #[must_use]
    pub fn asked_twice(&self) -> Option<Key> {
        self.asked_twice
    }

    /// The cues of this step, in the order of emission.
    #[must_use]
    pub fn cues(&self) -> &[(Key, S::Cue)] {
        &self.cues
    }

    /// The claims of this step, for local players.
    #[must_use]
    pub fn claims(&self) -> &[(PlayerId, S::Command)] {
        &self.claims
    }

    /// Returns `true` if [`withhold`](Effects::withhold) was called.
    #[must_use]
    pub fn withheld(&self) -> bool {
        self.withheld
    }

    pub(crate) fn memos_mut(&mut self) -> &mut StepMemos {
        &mut self.memos
    }

    pub(crate) fn reset(&mut self, phase: Phase, claimants: PlayerSet) {
        self.phase = phase;
        self.asks.clear();
        self.asked_twice = None;
        self.cues.clear();
        self.claims.clear();
        self.claimants = claimants;
        self.withheld = false;
    }
}

impl<S: Simulation> Default for Effects<S> {
    fn default() -> Self {
        Effects::new()
    }
}

impl<S: Simulation> Clone for Effects<S> {
    fn clone(&self) -> Self {
        Effects {
            asks: self.asks.clone(),
            asked_twice: self.asked_twice,
            cues: self.cues.clone(),
            claims: self.claims.clone(),
            claimants: self.claimants,
            withheld: self.withheld,
            phase: self.phase,
            memos: StepMemos::default(),
        }
    }
}

impl<S: Simulation> PartialEq for Effects<S> {
    fn eq(&self, other: &Self) -> bool {
        // Only the output is compared, not the claimants or the phase.
        self.asks == other.asks
            && self.cues == other.cues
            && self.claims == other.claims
            && self.withheld == other.withheld
    }
}

impl<S: Simulation> fmt::Debug for Effects<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Effects")
            .field("asks", &self.asks)
            .field("cues", &self.cues)
            .field("claims", &self.claims)
            .field("withheld", &self.withheld)
            .finish()
    }
}

#[cfg(test)]
mod tests;
