//! Every metric that a server tells: its name, what kind it is, and what it says. Here and nowhere else.
//!
//! Invariant: no label tells players or matches apart, so a server has as many series as a server of one match. What is
//! counted never goes down while the process lives; the guide (`docs/guide/operating.md`) says what to do about each.

/// What kind of number a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only rises.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How often something took how long.
    Histogram,
}

impl Kind {
    /// As the text format calls it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// One metric, whose series differ by at most one label, or by those of the build.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
}

const fn counter(name: &'static str, help: &'static str) -> Family {
    let kind = Kind::Counter;
    Family { name, kind, help }
}

const fn gauge(name: &'static str, help: &'static str) -> Family {
    let kind = Kind::Gauge;
    Family { name, kind, help }
}

const fn histogram(name: &'static str, help: &'static str) -> Family {
    let kind = Kind::Histogram;
    Family { name, kind, help }
}

pub(super) const BUILD_INFO: Family = gauge(
    "twinstep_build_info",
    "Always 1; its labels say which build this is.",
);
pub(super) const READY: Family = gauge(
    "twinstep_ready",
    "1 while newcomers find a place here, as /readyz says; else 0.",
);
pub(super) const MATCHES: Family = gauge("twinstep_matches", "Matches that run.");
pub(super) const MATCHES_MAX: Family = gauge(
    "twinstep_matches_max",
    "How many matches there may be at once where they are made on demand; else 0.",
);
pub(super) const MADE: Family = counter(
    "twinstep_matches_made_total",
    "Matches that were made for a ticket, or taken up again for one.",
);
pub(super) const NOT_MADE: Family = counter(
    "twinstep_matches_not_made_total",
    "Tickets for which no match was made, by the reason.",
);
pub(super) const ENDED: Family = counter(
    "twinstep_matches_ended_total",
    "Matches made for a ticket that have ended, by how.",
);
pub(super) const PLAYERS: Family = gauge(
    "twinstep_players",
    "Players who are in a match, with or without a connection.",
);
pub(super) const SPECTATORS: Family = gauge("twinstep_spectators", "Sessions that only watch.");
pub(super) const SEATS_FREE: Family = gauge(
    "twinstep_seats_free",
    "Seats that newcomers could take, over all matches.",
);
pub(super) const SESSIONS: Family = gauge(
    "twinstep_sessions",
    "Connections through the socket, whatever their stage.",
);
pub(super) const SESSIONS_MAX: Family = gauge(
    "twinstep_sessions_max",
    "How many connections there may be at once.",
);
pub(super) const RELIEF: Family = gauge(
    "twinstep_relief_steps",
    "What matches do without because ticks are late: 0 nothing, 1 spectators, 2 announcements, 3 newcomers, 4 short turns.",
);
pub(super) const MEMORY: Family = gauge(
    "twinstep_memory_bytes",
    "Memory that this process has (resident); 0 where it is not known.",
);
pub(super) const DISK_FREE: Family = gauge(
    "twinstep_journal_disk_free_bytes",
    "What is free on the fullest disk with a journal; 0 where it is not known.",
);

pub(super) const TICK_LATENESS: Family = histogram(
    "twinstep_tick_lateness_seconds",
    "By how much a match was late when it looked at what was due; of matches that somebody hears.",
);
pub(super) const STEP_TIME: Family = histogram(
    "twinstep_step_seconds",
    "How long one tick of the game took, with its digest.",
);
pub(super) const SEAL_TO_SEND: Family = histogram(
    "twinstep_seal_to_send_seconds",
    "From the moment that a turn was sealed until the socket had its last datagram; steps and journal included.",
);
pub(super) const RESOLVER_TIME: Family = histogram(
    "twinstep_resolver_seconds",
    "How long the resolver took for one query, at once or in a job.",
);

pub(super) const TICKS: Family = counter("twinstep_ticks_total", "Ticks that were sealed.");
pub(super) const TURNS: Family = counter("twinstep_turns_total", "Turns that were sent.");
pub(super) const FILLS: Family = counter(
    "twinstep_fills_total",
    "Inputs that did not come in time and were filled, one for each player and tick.",
);
pub(super) const QUERIES: Family = counter("twinstep_queries_total", "Queries that steps asked.");
pub(super) const UNANSWERED: Family = counter(
    "twinstep_unanswered_total",
    "Queries that stayed without an answer.",
);
pub(super) const DESYNCS: Family = counter(
    "twinstep_desyncs_total",
    "Players whose clients differed from the server, each counted at most once an hour.",
);
pub(super) const SERVER_FAULTS: Family = counter(
    "twinstep_server_faults_total",
    "Desyncs at which the journal says that this server's own world was wrong.",
);
pub(super) const HEALS: Family = counter("twinstep_heals_total", "Worlds sent to heal a client.");
pub(super) const MALFORMED: Family = counter(
    "twinstep_malformed_packets_total",
    "Packets of sessions that could not be read.",
);
pub(super) const PANICS: Family = counter(
    "twinstep_panics_total",
    "Panics of the game or of a hook, survived or not.",
);
pub(super) const JOURNAL_BYTES: Family =
    counter("twinstep_journal_bytes_total", "Bytes written to journals.");
pub(super) const JOURNAL_WRITES: Family = counter(
    "twinstep_journal_writes_total",
    "Records written to journals.",
);
pub(super) const JOURNAL_ERRORS: Family = counter(
    "twinstep_journal_errors_total",
    "Journals that could not be written any more.",
);
pub(super) const JOINS: Family = counter(
    "twinstep_joins_total",
    "Sessions that came to play or watch (result=\"playing\"), and those that ended before, by the reason.",
);
pub(super) const KICKS: Family = counter(
    "twinstep_kicks_total",
    "Players and spectators whom the server removed, by the reason.",
);
pub(super) const INCIDENTS: Family = counter(
    "twinstep_incidents_total",
    "What went wrong and was written down, by its kind.",
);

pub(super) const DATAGRAMS_IN: Family = counter(
    "twinstep_datagrams_received_total",
    "Datagrams that came through the socket.",
);
pub(super) const BYTES_IN: Family = counter(
    "twinstep_received_bytes_total",
    "Bytes of these, without headers of UDP and IP.",
);
pub(super) const DATAGRAMS_OUT: Family = counter(
    "twinstep_datagrams_sent_total",
    "Datagrams that the socket took.",
);
pub(super) const BYTES_OUT: Family = counter(
    "twinstep_sent_bytes_total",
    "Bytes of these, without headers of UDP and IP.",
);
pub(super) const PACKETS_IN: Family = counter(
    "twinstep_packets_received_total",
    "Packets of sessions that were let in, decrypted.",
);
pub(super) const PACKETS_OUT: Family = counter(
    "twinstep_packets_sent_total",
    "Packets that matches gave to the socket's task.",
);
pub(super) const DROPPED: Family = counter(
    "twinstep_datagrams_dropped_total",
    "Datagrams and packets that led to nothing, by the reason.",
);

/// All of them, in the order in which they are told.
#[cfg(test)]
pub(super) const ALL: [&Family; 42] = [
    &BUILD_INFO,
    &READY,
    &MATCHES,
    &MATCHES_MAX,
    &PLAYERS,
    &SPECTATORS,
    &SEATS_FREE,
    &SESSIONS,
    &SESSIONS_MAX,
    &RELIEF,
    &MEMORY,
    &DISK_FREE,
    &TICK_LATENESS,
    &STEP_TIME,
    &SEAL_TO_SEND,
    &RESOLVER_TIME,
    &TICKS,
    &TURNS,
    &FILLS,
    &QUERIES,
    &UNANSWERED,
    &DESYNCS,
    &SERVER_FAULTS,
    &HEALS,
    &MALFORMED,
    &PANICS,
    &JOURNAL_BYTES,
    &JOURNAL_WRITES,
    &JOURNAL_ERRORS,
    &MADE,
    &NOT_MADE,
    &ENDED,
    &JOINS,
    &KICKS,
    &INCIDENTS,
    &DATAGRAMS_IN,
    &BYTES_IN,
    &DATAGRAMS_OUT,
    &BYTES_OUT,
    &PACKETS_IN,
    &PACKETS_OUT,
    &DROPPED,
];
