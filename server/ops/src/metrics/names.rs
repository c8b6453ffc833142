//! The table of all metrics: name, kind and description.
//!
//! Invariant: no label identifies players or matches, so a server of many matches has as many series as a server of
//! one. Counters never decrease while the process lives. The guide (`docs/guide/operating.md`) explains what to do
//! about each metric.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// One metric. Its series differ by at most one label; `build_info` has several.
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
    "Always 1; the labels identify the build.",
);
pub(super) const READY: Family = gauge(
    "twinstep_ready",
    "1 while this server admits newcomers (see /readyz), else 0.",
);
pub(super) const MATCHES: Family = gauge("twinstep_matches", "Running matches.");
pub(super) const MATCHES_MAX: Family = gauge(
    "twinstep_matches_max",
    "The limit of matches on demand; 0 if there are none.",
);
pub(super) const MADE: Family = counter(
    "twinstep_matches_made_total",
    "Matches made or resumed on demand, because a ticket arrived.",
);
pub(super) const NOT_MADE: Family = counter(
    "twinstep_matches_not_made_total",
    "Tickets for which no match was made, by reason.",
);
pub(super) const ENDED: Family = counter(
    "twinstep_matches_ended_total",
    "Ended matches that were made on demand, by kind of end.",
);
pub(super) const PLAYERS: Family = gauge(
    "twinstep_players",
    "Players in a match, with or without a connection.",
);
pub(super) const SPECTATORS: Family = gauge("twinstep_spectators", "Spectator sessions.");
pub(super) const SEATS_FREE: Family = gauge(
    "twinstep_seats_free",
    "Free seats for newcomers, over all matches.",
);
pub(super) const SESSIONS: Family = gauge("twinstep_sessions", "Connections in any stage.");
pub(super) const SESSIONS_MAX: Family = gauge(
    "twinstep_sessions_max",
    "The maximum number of connections.",
);
pub(super) const RELIEF: Family = gauge(
    "twinstep_relief_steps",
    "Level of load shedding: 0 none, 1 no spectators, 2 no announcements, 3 no newcomers, 4 longer turns.",
);
pub(super) const MEMORY: Family = gauge(
    "twinstep_memory_bytes",
    "Resident memory of this process; 0 if unknown.",
);
pub(super) const DISK_FREE: Family = gauge(
    "twinstep_journal_disk_free_bytes",
    "Free bytes on the fullest disk with a journal; 0 if unknown.",
);

pub(super) const TICK_LATENESS: Family = histogram(
    "twinstep_tick_lateness_seconds",
    "Lateness of ticks, in matches with connected clients.",
);
pub(super) const STEP_TIME: Family = histogram(
    "twinstep_step_seconds",
    "Time of one tick of the game, with its digest.",
);
pub(super) const SEAL_TO_SEND: Family = histogram(
    "twinstep_seal_to_send_seconds",
    "Time from sealing a turn to sending its last datagram, including steps and journal.",
);
pub(super) const RESOLVER_TIME: Family = histogram(
    "twinstep_resolver_seconds",
    "Time that the resolver takes for one query, directly or in a job.",
);

pub(super) const TICKS: Family = counter("twinstep_ticks_total", "Sealed ticks.");
pub(super) const TURNS: Family = counter("twinstep_turns_total", "Sent turns.");
pub(super) const FILLS: Family = counter(
    "twinstep_fills_total",
    "Inputs that came too late and were filled in by the server, one per player and tick.",
);
pub(super) const QUERIES: Family = counter("twinstep_queries_total", "Queries that steps opened.");
pub(super) const UNANSWERED: Family = counter(
    "twinstep_unanswered_total",
    "Queries that the resolver did not answer.",
);
pub(super) const DESYNCS: Family = counter(
    "twinstep_desyncs_total",
    "Players whose client differed from the server, each counted at most once an hour.",
);
pub(super) const SERVER_FAULTS: Family = counter(
    "twinstep_server_faults_total",
    "Desyncs in which the journal shows that this server's world was wrong.",
);
pub(super) const HEALS: Family = counter("twinstep_heals_total", "Worlds sent to heal a client.");
pub(super) const MALFORMED: Family = counter(
    "twinstep_malformed_packets_total",
    "Packets of sessions that could not be read.",
);
pub(super) const PANICS: Family = counter(
    "twinstep_panics_total",
    "Panics of the game or a hook, including those that the match survived.",
);
pub(super) const JOURNAL_BYTES: Family =
    counter("twinstep_journal_bytes_total", "Bytes written to journals.");
pub(super) const JOURNAL_WRITES: Family = counter(
    "twinstep_journal_writes_total",
    "Records written to journals.",
);
pub(super) const JOURNAL_ERRORS: Family = counter(
    "twinstep_journal_errors_total",
    "Journals that could not be written.",
);
pub(super) const JOINS: Family = counter(
    "twinstep_joins_total",
    "Sessions by result of the join: \"playing\" if the session began to play or watch, else the reason it ended.",
);
pub(super) const KICKS: Family = counter(
    "twinstep_kicks_total",
    "Players and spectators removed by the server, by reason.",
);
pub(super) const INCIDENTS: Family =
    counter("twinstep_incidents_total", "Recorded incidents, by kind.");

pub(super) const DATAGRAMS_IN: Family =
    counter("twinstep_datagrams_received_total", "Datagrams received.");
pub(super) const BYTES_IN: Family = counter(
    "twinstep_received_bytes_total",
    "Bytes received, without UDP and IP headers.",
);
pub(super) const DATAGRAMS_OUT: Family = counter(
    "twinstep_datagrams_sent_total",
    "Datagrams that the socket accepted.",
);
pub(super) const BYTES_OUT: Family = counter(
    "twinstep_sent_bytes_total",
    "Bytes sent, without UDP and IP headers.",
);
pub(super) const PACKETS_IN: Family = counter(
    "twinstep_packets_received_total",
    "Decrypted packets of admitted sessions.",
);
pub(super) const PACKETS_OUT: Family = counter(
    "twinstep_packets_sent_total",
    "Packets passed from matches to the I/O task.",
);
pub(super) const DROPPED: Family = counter(
    "twinstep_datagrams_dropped_total",
    "Dropped datagrams and packets, by reason.",
);
pub(super) const WEB_LINES: Family = gauge(
    "twinstep_web_sessions",
    "Open WebTransport sessions of browsers.",
);
pub(super) const WEB_IN: Family = counter(
    "twinstep_web_datagrams_received_total",
    "The part of the received datagrams that came from browsers.",
);
pub(super) const WEB_OUT: Family = counter(
    "twinstep_web_datagrams_sent_total",
    "The part of the sent datagrams that went to browsers.",
);
pub(super) const WEB_CLOSED: Family = counter(
    "twinstep_web_closed_total",
    "Dials of browsers that were refused, and sessions of browsers that were closed, by reason.",
);

#[cfg(test)]
pub(super) const ALL: [&Family; 46] = [
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
    &WEB_IN,
    &WEB_OUT,
    &DROPPED,
    &WEB_LINES,
    &WEB_CLOSED,
];
